import { type alert, alerts } from '@keyward/contract/management/activity'
import { Button } from '@mantine/core'
import type { z } from 'zod'

import { useCall, useList } from '../api/hooks.ts'
import { ChoiceFilter } from '../parts/filters.tsx'
import { LicenseKey } from '../parts/license-key.tsx'
import { Screen } from '../parts/page-header.tsx'
import { When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlFilters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.alerts
type Alert = z.infer<typeof alert>

export default function Alerts() {
  const [filters, setFilters, clear] = useUrlFilters({ open: null })
  const list = useList(alerts.listAlerts, { query: filters })
  const acknowledge = useCall(alerts.acknowledgeAlert, { done: t.done })
  const columns: readonly Column<Alert>[] = [
    {
      title: t.license,
      cell: ({ licenseId }) => (licenseId === null ? t.webhook : <LicenseKey id={licenseId} />),
    },
    { title: t.count, cell: ({ count }) => count.toLocaleString(), isNumber: true },
    { title: t.since, cell: ({ firstAt }) => <When at={firstAt} /> },
    { title: t.last, cell: ({ lastAt }) => <When at={lastAt} /> },
    {
      title: t.acknowledged,
      cell: ({ id, acknowledgedAt }) =>
        acknowledgedAt === null ? (
          <Button
            size="xs"
            variant="light"
            onClick={() => acknowledge.mutate({ params: { id } })}
            loading={acknowledge.isPending}
          >
            {t.acknowledge}
          </Button>
        ) : (
          <When at={acknowledgedAt} />
        ),
    },
  ]
  return (
    <Screen title={t.title}>
      <ChoiceFilter label={t.state} names={t.states} value={filters.open} onChange={(open) => setFilters({ open })} />
      <ListTable list={list} columns={columns} empty={clear ? t.emptyFiltered : t.empty} label={t.title} />
    </Screen>
  )
}
