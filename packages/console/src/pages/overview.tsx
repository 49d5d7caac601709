/** The overview: checks by outcome, open alerts, and the usage of the plan's limits. */

import { type Code, ownOrganization } from '@keyward/contract'
import { alert } from '@keyward/contract/management/activity'
import { analytics } from '@keyward/contract/management/analytics'
import { Anchor, Card, Group, Progress, SegmentedControl, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core'
import { useState } from 'react'
import { Link } from 'wouter'

import { queryString } from '../api/client.ts'
import { useList, useRead } from '../api/hooks.ts'
import { Chart, type Bar } from '../parts/chart.tsx'
import { ErrorMessage, Screen, Waiting, When } from '../parts/parts.tsx'
import { text } from '../text.ts'

const t = text.overview
const MS_PER_HOUR = 3_600_000

const SPANS = {
  day: { hours: 24, interval: 'hour', label: t.day },
  week: { hours: 7 * 24, interval: 'hour', label: t.week },
  month: { hours: 30 * 24, interval: 'day', label: t.month },
} as const
type Span = keyof typeof SPANS

function isSpan(value: string): value is Span {
  return value in SPANS
}

/** Returns the bounds of the span, rounded to whole buckets, so that the query changes only when a new bucket begins. */
function boundsOf(span: Span): { from: string; to: string } {
  const { hours, interval } = SPANS[span]
  const bucketMs = interval === 'hour' ? MS_PER_HOUR : 24 * MS_PER_HOUR
  const endMs = (Math.floor(Date.now() / bucketMs) + 1) * bucketMs
  return { from: new Date(endMs - hours * MS_PER_HOUR).toISOString(), to: new Date(endMs).toISOString() }
}

function Checks() {
  const [span, setSpan] = useState<Span>('day')
  const { interval } = SPANS[span]
  const bounds = boundsOf(span)
  const read = useRead(`/analytics/checks${queryString({ ...bounds, interval, groupBy: 'code' })}`, analytics)
  const counts = new Map<Code, number>()
  const bars = new Map<string, Bar>()
  for (const { start, code, count } of read.data?.data ?? []) {
    if (code === undefined) continue
    counts.set(code, (counts.get(code) ?? 0) + count)
    const bar = bars.get(start) ?? { start, counts: {} }
    bar.counts[code] = count
    bars.set(start, bar)
  }
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const valid = counts.get('VALID') ?? 0
  return (
    <Card withBorder component="section" aria-label={t.checks}>
      <Stack>
        <Group justify="space-between">
          <Title order={2} size="h4">
            {t.checks}
          </Title>
          <SegmentedControl
            size="xs"
            value={span}
            onChange={(value) => isSpan(value) && setSpan(value)}
            data={Object.entries(SPANS).map(([value, { label }]) => ({ value, label }))}
            aria-label={t.checks}
          />
        </Group>
        <ErrorMessage error={read.error} />
        {read.isPending && <Waiting />}
        {read.data && total === 0 && <Text c="dimmed">{t.noChecks}</Text>}
        {total > 0 && (
          <>
            <Text>
              <b>{total.toLocaleString()}</b> {t.total}, {valid.toLocaleString()} {t.valid},{' '}
              {(total - valid).toLocaleString()} {t.rejected}
            </Text>
            <Chart bars={[...bars.values()]} {...bounds} interval={interval} />
            <details>
              <summary>{t.table}</summary>
              <Table aria-label={t.chart}>
                <Table.Tbody>
                  {[...counts].map(([code, count]) => (
                    <Table.Tr key={code}>
                      <Table.Th scope="row">{text.codes[code]}</Table.Th>
                      <Table.Td className="number">{count.toLocaleString()}</Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </details>
          </>
        )}
      </Stack>
    </Card>
  )
}

function OpenAlerts() {
  const list = useList('/alerts', alert)
  const open = list.items.filter(({ acknowledgedAt }) => acknowledgedAt === null).slice(0, 5)
  return (
    <Card withBorder component="section" aria-label={t.alerts}>
      <Stack gap="sm">
        <Title order={2} size="h4">
          {t.alerts}
        </Title>
        <ErrorMessage error={list.error} />
        {!list.isPending && open.length === 0 && <Text c="dimmed">{t.noAlerts}</Text>}
        {open.map(({ id, licenseId, count, lastAt }) => (
          <Group key={id} justify="space-between">
            <Anchor component={Link} href={`/licenses/${licenseId}`} size="sm">
              {text.alerts.license} {licenseId.slice(0, 8)}
            </Anchor>
            <Text size="sm" c="dimmed">
              {count.toLocaleString()} × <When at={lastAt} />
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  )
}

const QUOTAS = ['licenses', 'customers', 'products', 'members'] as const

function Use() {
  const { data, error } = useRead('/organization', ownOrganization)
  return (
    <Card withBorder component="section" aria-label={t.quotas}>
      <Stack gap="sm">
        <Title order={2} size="h4">
          {data ? `${data.name}: ${t.plan} ${data.plan}` : t.plan}
        </Title>
        <ErrorMessage error={error} />
        {data &&
          QUOTAS.flatMap((name) => {
            const quota = data.quotas[name]
            return quota ? [{ name, ...quota }] : []
          }).map(({ name, used, limit }) => (
            <div key={name}>
              <Group justify="space-between">
                <Text size="sm">{name}</Text>
                <Text size="sm" c="dimmed">
                  {(used ?? 0).toLocaleString()} / {limit.toLocaleString()}
                </Text>
              </Group>
              <Progress value={(100 * (used ?? 0)) / limit} aria-label={name} />
            </div>
          ))}
      </Stack>
    </Card>
  )
}

export default function Overview() {
  return (
    <Screen title={t.title}>
      <Checks />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <OpenAlerts />
        <Use />
      </SimpleGrid>
    </Screen>
  )
}
