/** The list of access rules, with filters in the URL, sorting, export, and actions on many rules. */

import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Menu } from '@mantine/core'
import { Link } from 'wouter'

import { queryString } from '../../api/client.ts'
import { ChoiceFilter, FilterBar, TextFilter } from '../../parts/filters.tsx'
import { Screen } from '../../parts/parts.tsx'
import { useUrlFilters } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { RulesTable } from './rules-table.tsx'

const t = text.rules
const EXPORT = '/api/v1/access-rules/export'

function Actions({ query, canWrite }: { query: Readonly<Record<string, string>>; canWrite: boolean }) {
  return (
    <>
      <Button variant="default" component={Link} href="/rules/sets">
        {t.sets}
      </Button>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default">{t.export}</Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item component="a" href={EXPORT + queryString({ ...query, format: 'csv' })} download>
            {t.exportCsv}
          </Menu.Item>
          <Menu.Item component="a" href={EXPORT + queryString({ ...query, format: 'json' })} download>
            {t.exportJson}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {canWrite && (
        <>
          <Button variant="default" component={Link} href="/rules/import">
            {text.ruleImport.open}
          </Button>
          <Button component={Link} href="/rules/new">
            {t.new}
          </Button>
        </>
      )}
    </>
  )
}

const ABSENT = { matches: '', kind: '', mode: '', type: '', scope: '', sort: '', order: '' }

export default function Rules({ me }: { me: Me }) {
  const [filters, setFilter, setFilters] = useUrlFilters(ABSENT)
  const { sort, order, ...query } = filters
  const isFiltered = Object.values(query).some((value) => value !== '')
  const canWrite = me.permissions.includes('licenses.write')
  return (
    <Screen title={t.title} actions={<Actions query={query} canWrite={canWrite} />}>
      <FilterBar onClear={isFiltered ? () => setFilters(ABSENT) : null}>
        <TextFilter
          label={t.covers}
          placeholder={t.coversHint}
          value={filters.matches}
          onChange={(value) => setFilter('matches', value)}
        />
        <ChoiceFilter
          label={t.kind}
          names={text.kinds}
          value={filters.kind}
          onChange={(value) => setFilter('kind', value)}
        />
        <ChoiceFilter
          label={t.type}
          names={text.types}
          value={filters.type}
          onChange={(value) => setFilter('type', value)}
        />
        <ChoiceFilter
          label={t.scope}
          names={text.scopes}
          value={filters.scope}
          onChange={(value) => setFilter('scope', value)}
        />
        <ChoiceFilter
          label={t.mode}
          names={t.modes}
          value={filters.mode}
          onChange={(value) => setFilter('mode', value)}
        />
      </FilterBar>
      <RulesTable
        filters={filters}
        label={t.title}
        canWrite={canWrite}
        sorting={{
          by: sort,
          order: order === 'asc' ? 'asc' : 'desc',
          onSort: (by, next) => setFilters({ sort: by, order: next }),
        }}
        empty={
          isFiltered ? (
            t.emptyFiltered
          ) : (
            <>
              {t.empty}
              {canWrite && (
                <Button component={Link} href="/rules/new">
                  {t.new}
                </Button>
              )}
            </>
          )
        }
      />
    </Screen>
  )
}
