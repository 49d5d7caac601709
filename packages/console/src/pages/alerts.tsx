/** Alerts about overused licenses. */

import { alert } from '@keyward/contract/management/activity'
import { Button } from '@mantine/core'
import type { z } from 'zod'

import { call } from '../api/client.ts'
import { useChange, useList } from '../api/hooks.ts'
import { Screen, TextLink, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.alerts
type Alert = z.infer<typeof alert>

export default function Alerts() {
  const list = useList('/alerts', alert)
  const acknowledge = useChange((id: string) => call({ method: 'POST', path: `/alerts/${id}/acknowledge` }, alert), {
    done: t.done,
  })
  const columns: readonly Column<Alert>[] = [
    {
      title: t.license,
      cell: ({ licenseId }) => <TextLink href={`/licenses/${licenseId}`}>{licenseId.slice(0, 8)}</TextLink>,
    },
    { title: t.count, cell: ({ count }) => count.toLocaleString(), isNumber: true },
    { title: t.since, cell: ({ firstAt }) => <When at={firstAt} /> },
    { title: t.last, cell: ({ lastAt }) => <When at={lastAt} /> },
    {
      title: t.acknowledged,
      cell: ({ id, acknowledgedAt }) =>
        acknowledgedAt === null ? (
          <Button size="xs" variant="light" onClick={() => acknowledge.mutate(id)} loading={acknowledge.isPending}>
            {t.acknowledge}
          </Button>
        ) : (
          <When at={acknowledgedAt} />
        ),
    },
  ]
  return (
    <Screen title={t.title}>
      <ListTable list={list} columns={columns} empty={t.empty} label={t.title} />
    </Screen>
  )
}
