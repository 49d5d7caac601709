import { CODES } from '@keyward/contract'
import { activity } from '@keyward/contract/management/activity'

import { useList } from '../api/hooks.ts'
import { ExportButton } from '../parts/export-button.tsx'
import { ChoiceFilter, FilterBar, TextFilter } from '../parts/filters.tsx'
import { Screen } from '../parts/page-header.tsx'
import { fromOf, PERIODS } from '../parts/periods.ts'
import { useUrlFilters } from '../parts/url.ts'
import { text } from '../text.ts'
import { ActivityTable } from './activity-table.tsx'
const FILTERS = { type: null, code: null, machineId: null, hours: null }
/** The interval at which the list is read again, because checks add entries. */
const LIVE_MS = 10_000
const CODE_NAMES = Object.fromEntries(CODES.map((code) => [code, text.codes[code]]))

export default function Activity() {
  const filters = useUrlFilters(FILTERS)
  const [{ hours, ...query }, setFilters, clear] = filters
  const input = { query: { ...query, from: fromOf(hours) } }
  const list = useList(activity.listActivity, input, LIVE_MS)
  return (
    <Screen title="Activity" actions={<ExportButton operation={activity.exportActivity} input={input} />}>
      <FilterBar onClear={clear}>
        <TextFilter
          label="Machine"
          placeholder="The whole machine id"
          value={query.machineId}
          onChange={(machineId) => setFilters({ machineId })}
        />
        <ChoiceFilter filters={filters} name="type" label="Event" names={text.activities} />
        <ChoiceFilter filters={filters} name="code" label="Outcome" names={CODE_NAMES} />
        <ChoiceFilter filters={filters} name="hours" label="When" names={PERIODS} />
      </FilterBar>
      <ActivityTable
        list={list}
        empty={
          clear ? 'No activity matches these filters.' : 'No activity yet. Checks appear here after about a second.'
        }
        showsLicense
      />
    </Screen>
  )
}
