/** The list of licenses, and the window that creates one. */

import { license, type License, type PolicyType } from '@keyward/contract'
import { Button, Group, NumberInput, Select, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import { useLocation } from 'wouter'

import { call } from '../api/client.ts'
import { useChange, useList } from '../api/hooks.ts'
import { CustomerField, customerWith, ProductField } from '../parts/choose.tsx'
import { FormWindow } from '../parts/form.tsx'
import { Screen, StatusBadge, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlFilters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.licenses

const COLUMNS: readonly Column<License>[] = [
  { title: t.key, cell: ({ key }) => <span className="mono">{key}</span> },
  { title: t.status, cell: ({ status }) => <StatusBadge status={status} /> },
  { title: t.machines, cell: ({ machines }) => `${machines.used} / ${machines.max ?? '∞'}`, isNumber: true },
  { title: t.expires, cell: ({ policy }) => <When at={policy.expiresAt} /> },
  { title: t.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
]

const TERMS: readonly { value: PolicyType; label: string }[] = [
  { value: 'PERPETUAL', label: t.perpetual },
  { value: 'SUBSCRIPTION', label: t.subscription },
  { value: 'TRIAL', label: t.trial },
]

function NewLicense({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const [, navigate] = useLocation()
  const [productId, setProductId] = useState<string | null>(null)
  const [email, setEmail] = useState('')
  const [type, setType] = useState<PolicyType>('PERPETUAL')
  const [expiresOn, setExpiresOn] = useState('')
  const [maxMachines, setMaxMachines] = useState<number | string>(1)
  const [key, setKey] = useState('')
  const create = useChange(
    async () => {
      const policy = {
        type,
        maxMachines: maxMachines === '' ? null : Number(maxMachines),
        expiresAt: type === 'PERPETUAL' || expiresOn === '' ? null : `${expiresOn}T00:00:00Z`,
      }
      const body = { productId, customerId: await customerWith(email), policy, ...(key !== '' && { key }) }
      return call({ method: 'POST', path: '/licenses', body, waits: true }, license)
    },
    { done: t.created, onDone: ({ id }) => navigate(`/licenses/${id}`), quiet: true },
  )
  return (
    <FormWindow
      title={t.new}
      action={t.new}
      opened={opened}
      onClose={onClose}
      onSubmit={() => create.mutateAsync(undefined)}
    >
      {(errors) => (
        <>
          <ProductField value={productId} onChange={setProductId} error={errors['productId']} />
          <CustomerField value={email} onChange={setEmail} error={errors['email']} />
          <Select
            label={t.terms}
            data={[...TERMS]}
            value={type}
            onChange={(value) => setType(TERMS.find((one) => one.value === value)?.value ?? 'PERPETUAL')}
            allowDeselect={false}
          />
          {type !== 'PERPETUAL' && (
            <TextInput
              label={t.expires}
              description={t.expiresHint}
              type="date"
              value={expiresOn}
              onChange={(event) => setExpiresOn(event.currentTarget.value)}
              error={errors['policy/expiresAt']}
              required
            />
          )}
          <NumberInput
            label={t.maxMachines}
            description={t.maxMachinesHint}
            value={maxMachines}
            onChange={setMaxMachines}
            min={1}
            max={100_000}
            allowDecimal={false}
            error={errors['policy/maxMachines']}
          />
          <TextInput
            label={t.ownKey}
            description={t.ownKeyHint}
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
            error={errors['key']}
          />
        </>
      )}
    </FormWindow>
  )
}

export default function Licenses() {
  const [filters, setFilter] = useUrlFilters({ status: '', productId: '', customerId: '', key: '' })
  const [isCreating, creating] = useDisclosure(false)
  const list = useList('/licenses', license, filters)
  const isFiltered = Object.values(filters).some((value) => value !== '')
  return (
    <Screen title={t.title} actions={<Button onClick={creating.open}>{t.new}</Button>}>
      <Group align="end" gap="sm">
        <Select
          label={t.status}
          placeholder={text.any}
          data={Object.entries(text.statuses).map(([value, label]) => ({ value, label }))}
          value={filters.status === '' ? null : filters.status}
          onChange={(value) => setFilter('status', value)}
          clearable
          w={150}
        />
        <ProductField
          value={filters.productId === '' ? null : filters.productId}
          onChange={(value) => setFilter('productId', value)}
          isOptional
        />
        <TextInput
          label={t.exactKey}
          defaultValue={filters.key}
          onBlur={(event) => setFilter('key', event.currentTarget.value.trim())}
          onKeyDown={(event) => event.key === 'Enter' && setFilter('key', event.currentTarget.value.trim())}
        />
      </Group>
      <ListTable
        list={list}
        columns={COLUMNS}
        href={({ id }) => `/licenses/${id}`}
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
      <NewLicense opened={isCreating} onClose={creating.close} />
    </Screen>
  )
}
