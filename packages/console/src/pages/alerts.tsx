import { alerts } from '@keyward/contract/management/activity'
import { Button } from '@mantine/core'

import { useCall, useList } from '../api/hooks.ts'
import { useMay } from '../api/me.ts'
import { type Alert, AlertSentence } from '../parts/alert-sentence.tsx'
import { ChoiceFilter, FilterBar } from '../parts/filters.tsx'
import { Screen } from '../parts/page-header.tsx'
import { Ago } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlFilters } from '../parts/url.ts'

const t = {
  states: { true: 'Open', false: 'Acknowledged' },
}

export default function Alerts() {
  const may = useMay()
  const filters = useUrlFilters({ open: null })
  const [query, , clear] = filters
  const list = useList(alerts.listAlerts, { query })
  const acknowledge = useCall(alerts.acknowledgeAlert, { done: 'Acknowledged the alert.' })
  const columns: readonly Column<Alert>[] = [
    {
      title: 'What happened',
      cell: (alert) => (
        <div className="alert">
          <AlertSentence alert={alert} />
        </div>
      ),
    },
    {
      title: 'Acknowledged',
      cell: ({ id, acknowledgedAt }) =>
        acknowledgedAt === null && may('licenses.write') ? (
          <Button
            size="xs"
            variant="default"
            onClick={() => acknowledge.mutate({ params: { id } })}
            loading={acknowledge.isPending && acknowledge.variables.params.id === id}
          >
            Acknowledge
          </Button>
        ) : (
          <Ago at={acknowledgedAt} never={t.states.true} />
        ),
    },
  ]
  return (
    <Screen title="Alerts">
      <FilterBar onClear={clear}>
        <ChoiceFilter filters={filters} name="open" label="State" names={t.states} />
      </FilterBar>
      <ListTable
        list={list}
        columns={columns}
        empty={
          clear
            ? 'No alert matches this filter.'
            : 'No alerts. Keyward opens an alert when more machines use a license than it allows, and when it disables a webhook endpoint.'
        }
        label="Alerts"
        hasTwoLines
      />
    </Screen>
  )
}
