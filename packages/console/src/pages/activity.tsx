import { CODES } from '@keyward/contract'
import { activityEntry } from '@keyward/contract/management/activity'

import { useList } from '../api/hooks.ts'
import { ActivityTable } from '../parts/activity-table.tsx'
import { ChoiceFilter, FilterBar, TextFilter } from '../parts/filters.tsx'
import { Screen } from '../parts/parts.tsx'
import { fromOf, PERIODS } from '../parts/periods.ts'
import { useUrlFilters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.activity
const ABSENT = { type: '', code: '', machineId: '', hours: '' }
/** The interval at which the list is read again, because checks add entries. */
const LIVE_MS = 10_000
const CODE_NAMES = Object.fromEntries(CODES.map((code) => [code, text.codes[code]]))

export default function Activity() {
  const [filters, setFilter, setFilters] = useUrlFilters(ABSENT)
  const { hours, ...query } = filters
  const list = useList('/activity', activityEntry, { ...query, from: fromOf(hours) }, LIVE_MS)
  const isFiltered = Object.values(filters).some((value) => value !== '')
  return (
    <Screen title={t.title}>
      <FilterBar onClear={isFiltered ? () => setFilters(ABSENT) : null}>
        <TextFilter
          label={t.machine}
          placeholder={t.machineHint}
          value={filters.machineId}
          onChange={(value) => setFilter('machineId', value)}
        />
        <ChoiceFilter
          label={t.event}
          names={t.types}
          value={filters.type}
          onChange={(value) => setFilter('type', value)}
        />
        <ChoiceFilter
          label={t.outcome}
          names={CODE_NAMES}
          value={filters.code}
          onChange={(value) => setFilter('code', value)}
        />
        <ChoiceFilter label={t.period} names={PERIODS} value={hours} onChange={(value) => setFilter('hours', value)} />
      </FilterBar>
      <ActivityTable list={list} empty={isFiltered ? t.emptyFiltered : t.empty} showsLicense />
    </Screen>
  )
}
