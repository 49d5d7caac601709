/** The access rules: the values that they match, their scopes, and their counters. */

import { accessRule, type AccessRule } from '@keyward/contract'
import { Badge, Button, Group, Select, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'

import { callWithoutResponse } from '../api/client.ts'
import { useChange, useList } from '../api/hooks.ts'
import { type Column, ConfirmButton, ListTable, Screen, When } from '../parts/parts.tsx'
import { ImportRules } from '../parts/rule-import.tsx'
import { NewRule } from '../parts/rule-window.tsx'
import { useUrlFilters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.rules

function options(names: Readonly<Record<string, string>>) {
  return Object.entries(names).map(([value, label]) => ({ value, label }))
}

export default function Rules() {
  const [filters, setFilter] = useUrlFilters({ kind: '', type: '', scope: '', value: '' })
  const [isCreating, creating] = useDisclosure(false)
  const [isImporting, importing] = useDisclosure(false)
  const list = useList('/access-rules', accessRule, filters)
  const remove = useChange(
    (id: string) => callWithoutResponse({ method: 'DELETE', path: `/access-rules/${id}`, waits: true }),
    { done: t.deleted },
  )
  const columns: readonly Column<AccessRule>[] = [
    { title: t.value, cell: ({ value }) => <span className="mono">{value}</span> },
    {
      title: t.kind,
      cell: ({ kind, mode }) => (
        <Badge variant="dot" color={mode === 'MONITOR' ? 'gray' : kind === 'EXCLUSION' ? 'teal' : 'red'}>
          {mode === 'MONITOR' ? t.monitoredKind(text.kinds[kind]) : text.kinds[kind]}
        </Badge>
      ),
    },
    { title: t.type, cell: ({ type }) => text.types[type] },
    { title: t.scope, cell: ({ scope }) => text.scopes[scope] },
    {
      title: t.note,
      cell: ({ note }) => (
        <Text size="sm" lineClamp={2}>
          {note}
        </Text>
      ),
    },
    { title: t.matches, cell: ({ matchCount }) => matchCount.toLocaleString(), isNumber: true },
    { title: t.lastMatch, cell: ({ lastMatchedAt }) => <When at={lastMatchedAt} /> },
    { title: t.expires, cell: ({ expiresAt }) => <When at={expiresAt} /> },
    {
      title: text.actions,
      cell: ({ id }) => (
        <ConfirmButton
          size="xs"
          label={t.delete}
          title={t.deleteTitle}
          consequence={t.deleteHint}
          onConfirm={() => remove.mutateAsync(id)}
        />
      ),
    },
  ]
  const filter = (name: 'kind' | 'type' | 'scope', label: string, names: Readonly<Record<string, string>>) => (
    <Select
      label={label}
      placeholder={text.any}
      data={options(names)}
      value={filters[name] === '' ? null : filters[name]}
      onChange={(value) => setFilter(name, value)}
      clearable
      w={160}
    />
  )
  const isFiltered = Object.values(filters).some((value) => value !== '')
  return (
    <Screen
      title={t.title}
      actions={
        <>
          <Button variant="default" onClick={importing.open}>
            {t.import}
          </Button>
          <Button onClick={creating.open}>{t.new}</Button>
        </>
      }
    >
      <Group align="end" gap="sm">
        {filter('kind', t.kind, text.kinds)}
        {filter('type', t.type, text.types)}
        {filter('scope', t.scope, text.scopes)}
        <TextInput
          label={t.exactValue}
          defaultValue={filters.value}
          onBlur={(event) => setFilter('value', event.currentTarget.value.trim())}
          onKeyDown={(event) => event.key === 'Enter' && setFilter('value', event.currentTarget.value.trim())}
        />
      </Group>
      <ListTable
        list={list}
        columns={columns}
        label={t.title}
        empty={
          isFiltered ? (
            t.emptyFiltered
          ) : (
            <>
              {t.empty}
              <Button onClick={creating.open}>{t.new}</Button>
            </>
          )
        }
      />
      <NewRule opened={isCreating} onClose={creating.close} />
      {isImporting && <ImportRules onClose={importing.close} />}
    </Screen>
  )
}
