import { alerts } from '@keyward/contract/management/activity'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button } from '@mantine/core'

import { useCall, useList } from '../api/hooks.ts'
import { type Alert, AlertSentence } from '../parts/alert-sentence.tsx'
import { ChoiceFilter, FilterBar } from '../parts/filters.tsx'
import { Screen } from '../parts/page-header.tsx'
import { Ago } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlFilters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.alerts

export default function Alerts({ me }: { me: Me }) {
  const [filters, setFilters, clear] = useUrlFilters({ open: null })
  const list = useList(alerts.listAlerts, { query: filters })
  const acknowledge = useCall(alerts.acknowledgeAlert, { done: t.done })
  const canWrite = me.permissions.includes('licenses.write')
  const columns: readonly Column<Alert>[] = [
    {
      title: t.event,
      cell: (alert) => (
        <div className="alert">
          <AlertSentence alert={alert} />
        </div>
      ),
    },
    {
      title: t.acknowledged,
      cell: ({ id, acknowledgedAt }) =>
        acknowledgedAt === null && canWrite ? (
          <Button
            size="xs"
            variant="default"
            onClick={() => acknowledge.mutate({ params: { id } })}
            loading={acknowledge.isPending && acknowledge.variables.params.id === id}
          >
            {t.acknowledge}
          </Button>
        ) : (
          <Ago at={acknowledgedAt} never={t.states.true} />
        ),
    },
  ]
  return (
    <Screen title={t.title}>
      <FilterBar onClear={clear}>
        <ChoiceFilter label={t.state} names={t.states} value={filters.open} onChange={(open) => setFilters({ open })} />
      </FilterBar>
      <ListTable list={list} columns={columns} empty={clear ? t.emptyFiltered : t.empty} label={t.title} hasTwoLines />
    </Screen>
  )
}
