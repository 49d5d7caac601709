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

const t = text.rules

const FILTERS = { matches: null, kind: null, mode: null, type: null, scope: null }

function Actions({ query, canWrite }: { query: Filters<keyof typeof FILTERS>; canWrite: boolean }) {
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
          <Menu.Item
            component="a"
            href={hrefOf(accessRules.exportAccessRules, { query: { ...query, format: 'csv' } })}
            download
          >
            {t.exportCsv}
          </Menu.Item>
          <Menu.Item
            component="a"
            href={hrefOf(accessRules.exportAccessRules, { query: { ...query, format: 'json' } })}
            download
          >
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

export default function Rules({ me }: { me: Me }) {
  const [filters, setFilters, clear] = useUrlFilters(FILTERS)
  const [order, sorting] = useUrlSorting()
  const canWrite = me.permissions.includes('licenses.write')
  return (
    <Screen title={t.title} actions={<Actions query={filters} canWrite={canWrite} />}>
      <FilterBar onClear={clear}>
        <TextFilter
          label={t.covers}
          placeholder={t.coversHint}
          value={filters.matches}
          onChange={(matches) => setFilters({ matches })}
        />
        <ChoiceFilter
          label={t.kind}
          names={text.kinds}
          value={filters.kind}
          onChange={(kind) => setFilters({ kind })}
        />
        <ChoiceFilter
          label={t.type}
          names={text.types}
          value={filters.type}
          onChange={(type) => setFilters({ type })}
        />
        <ChoiceFilter
          label={t.scope}
          names={text.scopes}
          value={filters.scope}
          onChange={(scope) => setFilters({ scope })}
        />
        <ChoiceFilter label={t.mode} names={t.modes} value={filters.mode} onChange={(mode) => setFilters({ mode })} />
      </FilterBar>
      <RulesTable
        filters={{ ...filters, ...order }}
        label={t.title}
        canWrite={canWrite}
        sorting={sorting}
        empty={
          clear ? (
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
