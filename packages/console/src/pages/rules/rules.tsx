/** The list of access rules, with filters in the URL, sorting, export, and actions on many rules. */

import { accessRules } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Menu } from '@mantine/core'
import { Link } from 'wouter'

import { hrefOf } from '../../api/client.ts'
import { ChoiceFilter, FilterBar, TextFilter } from '../../parts/filters.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { type Filters, useUrlFilters, useUrlSorting } from '../../parts/url.ts'
import { text } from '../../text.ts'
import { RulesTable } from './rules-table.tsx'

const FILTERS = { matches: null, kind: null, mode: null, type: null, scope: null }

function Actions({ query, canWrite }: { query: Filters<keyof typeof FILTERS>; canWrite: boolean }) {
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
      {canWrite && (
        <>
          <Button variant="default" component={Link} href="/rules/import">
            Import
          </Button>
          <Button component={Link} href="/rules/new">
            New rule
          </Button>
        </>
      )}
    </>
  )
}

export default function Rules({ me }: { me: Me }) {
  const [filters, setFilters, clear] = useUrlFilters(FILTERS)
  const [order, sorting] = useUrlSorting()
  const canWrite = me.permissions.includes('licenses.write')
  return (
    <Screen title="Access rules" actions={<Actions query={filters} canWrite={canWrite} />}>
      <FilterBar onClear={clear}>
        <TextFilter
          label="Which rules match …"
          placeholder="An address, a machine id or a country code"
          value={filters.matches}
          onChange={(matches) => setFilters({ matches })}
        />
        <ChoiceFilter label="Kind" names={text.kinds} value={filters.kind} onChange={(kind) => setFilters({ kind })} />
        <ChoiceFilter
          label="What it matches"
          names={text.types}
          value={filters.type}
          onChange={(type) => setFilters({ type })}
        />
        <ChoiceFilter
          label="Applies to"
          names={text.scopes}
          value={filters.scope}
          onChange={(scope) => setFilters({ scope })}
        />
        <ChoiceFilter label="Mode" names={text.modes} value={filters.mode} onChange={(mode) => setFilters({ mode })} />
      </FilterBar>
      <RulesTable
        filters={{ ...filters, ...order }}
        label="Access rules"
        canWrite={canWrite}
        sorting={sorting}
        empty={
          clear ? (
            'No access rule matches these filters.'
          ) : (
            <>
              No access rules yet. Block an address, a machine or a country, or let a machine through.
              {canWrite && (
                <Button component={Link} href="/rules/new">
                  New rule
                </Button>
              )}
            </>
          )
        }
      />
    </Screen>
  )
}
