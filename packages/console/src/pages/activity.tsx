import { CODES } from '@keyward/contract'
import { activity } from '@keyward/contract/management/activity'
import type { Me } from '@keyward/contract/management/sign-in'

import { type ItemOf, useList } from '../api/hooks.ts'
import { ExportButton } from '../parts/export-button.tsx'
import { ChoiceFilter, FilterBar, TextFilter } from '../parts/filters.tsx'
import { Screen } from '../parts/page-header.tsx'
import { fromOf, PERIODS } from '../parts/periods.ts'
import { useUrlFilters } from '../parts/url.ts'
import { text } from '../text.ts'
import { ActivityTable } from './activity-table.tsx'

const t = text.activity
type Entry = ItemOf<typeof activity.listActivity>
const FILTERS = { type: null, code: null, machineId: null, hours: null }
/** The interval at which the list is read again, because checks add entries. */
const LIVE_MS = 10_000
const CODE_NAMES = Object.fromEntries(CODES.map((code) => [code, text.codes[code]]))

function csvRow({ firstAt, lastAt, type, code, licenseId, machineId, count }: Entry) {
  return { firstAt, lastAt, type, code: code ?? null, licenseId, machineId: machineId ?? null, count }
}

export default function Activity({ me }: { me: Me }) {
  const [filters, setFilters, clear] = useUrlFilters(FILTERS)
  const { hours, ...query } = filters
  const input = { query: { ...query, from: fromOf(hours) } }
  const list = useList(activity.listActivity, input, LIVE_MS)
  return (
    <Screen
      title={t.title}
      actions={<ExportButton operation={activity.listActivity} input={input} file="activity" row={csvRow} />}
    >
      <FilterBar onClear={clear}>
        <TextFilter
          label={t.machine}
          placeholder={t.machineHint}
          value={filters.machineId}
          onChange={(machineId) => setFilters({ machineId })}
        />
        <ChoiceFilter label={t.event} names={t.types} value={filters.type} onChange={(type) => setFilters({ type })} />
        <ChoiceFilter
          label={t.outcome}
          names={CODE_NAMES}
          value={filters.code}
          onChange={(code) => setFilters({ code })}
        />
        <ChoiceFilter
          label={t.period}
          names={PERIODS}
          value={hours}
          onChange={(value) => setFilters({ hours: value })}
        />
      </FilterBar>
      <ActivityTable
        list={list}
        empty={clear ? t.emptyFiltered : t.empty}
        showsLicense
        canWrite={me.permissions.includes('licenses.write')}
      />
    </Screen>
  )
}
