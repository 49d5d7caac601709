/** The list of access rules, with filters in the URL, sorting, export, and actions on many rules. */

import { accessRules, organizations, type RuleKind, type RuleMode } from '@keyward/contract'
import { Button, Menu } from '@mantine/core'
import type { ReactNode } from 'react'
import { Link } from 'wouter'

import { hrefOf } from '../../api/client.ts'
import { useRead } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { ChoiceFilter, FilterBar, TextFilter } from '../../parts/filters.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { type Filters, useUrlFilters, useUrlSorting } from '../../parts/url.ts'
import { type View, Views } from '../../parts/views.tsx'
import { text } from '../../text.ts'
import { RulesTable } from './rules-table.tsx'

const FILTERS = { matches: null, kind: null, mode: null, type: null, scope: null }

type Query = Readonly<{ kind?: RuleKind; mode?: RuleMode }>
const VIEWS: readonly View<Query>[] = [
  { label: 'All', query: {} },
  { label: 'Block', query: { kind: 'BLACKLIST' } },
  { label: 'Allow', query: { kind: 'EXCLUSION' } },
  { label: 'Only allow', query: { kind: 'RESTRICTION' } },
  { label: 'Only counting', query: { mode: 'MONITOR' } },
]

function CountOfView({ query }: { query: Query }) {
  const { data } = useRead(accessRules.listAccessRules, { query: { ...query, limit: 1, total: 'true' } })
  return data?.total?.toLocaleString() ?? ''
}

function Actions({ query, create }: { query: Filters<keyof typeof FILTERS>; create: ReactNode }) {
  return (
    <>
      <Button variant="default" component={Link} href="/rules/sets">
        Sets
      </Button>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default">Export</Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            component="a"
            href={hrefOf(accessRules.exportAccessRules, { query: { ...query, format: 'csv' } })}
            download
          >
            These rules as CSV
          </Menu.Item>
          <Menu.Item
            component="a"
            href={hrefOf(accessRules.exportAccessRules, { query: { ...query, format: 'json' } })}
            download
          >
            These rules as JSON
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {create && (
        <Button variant="default" component={Link} href="/rules/import">
          Import
        </Button>
      )}
      {create}
    </>
  )
}

export default function Rules() {
  const may = useMay()
  const filters = useUrlFilters(FILTERS)
  const [query, setFilters, clear] = filters
  const [order, sorting] = useUrlSorting()
  const { data: organization } = useRead(organizations.readOwnOrganization, {})
  const create = may('licenses.write') && (
    <Button component={Link} href="/rules/new">
      New rule
    </Button>
  )
  return (
    <Screen title="Access rules" actions={<Actions query={query} create={create} />}>
      <Views views={VIEWS} filters={query} items={organization?.usage.rules.used} Count={CountOfView} />
      <FilterBar onClear={clear}>
        <TextFilter
          label="Which rules match …"
          placeholder="An address, a machine id or a country code"
          value={query.matches}
          onChange={(matches) => setFilters({ matches })}
        />
        <ChoiceFilter filters={filters} name="kind" label="Kind" names={text.kinds} />
        <ChoiceFilter filters={filters} name="type" label="What it matches" names={text.types} />
        <ChoiceFilter filters={filters} name="scope" label="Applies to" names={text.scopes} />
        <ChoiceFilter filters={filters} name="mode" label="Mode" names={text.modes} />
      </FilterBar>
      <RulesTable
        filters={{ ...query, ...order }}
        label="Access rules"
        sorting={sorting}
        empty={
          clear
            ? 'No access rule matches these filters.'
            : 'No access rules yet. Block an address, a machine or a country, or let a machine through.'
        }
        create={!clear && create}
      />
    </Screen>
  )
}
