/** The overview: checks by outcome, open alerts, the licenses that expire next, and the use of the plan's limits. */

import { type Code, licenses, organizations } from '@keyward/contract'
import { alerts } from '@keyward/contract/management/activity'
import { analytics } from '@keyward/contract/management/analytics'
import type { Me } from '@keyward/contract/management/sign-in'
import { Card, Group, Progress, SegmentedControl, SimpleGrid, Skeleton, Stack, Table, Text, Title } from '@mantine/core'
import { type ReactNode, useState } from 'react'

import { useList, useRead } from '../api/hooks.ts'
import { Chart, type Bar } from '../parts/chart.tsx'
import { LicenseKey } from '../parts/license-key.tsx'
import { Screen } from '../parts/page-header.tsx'
import { TextLink, Waiting, When } from '../parts/parts.tsx'
import { ErrorMessage } from '../parts/states.tsx'
import { text } from '../text.ts'

const t = text.overview
const MS_PER_HOUR = 3_600_000
const MAX_SHOWN = 6

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
  const read = useRead(analytics.countChecks, { query: { ...bounds, interval, groupBy: 'code' } })
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

/** A card with the first items of a list, and a link to the whole list. */
function Few({
  title,
  href,
  empty,
  list,
  children,
}: {
  title: string
  href: string
  empty: string
  list: { error: Error | null; isPending: boolean; items: readonly unknown[] }
  children: ReactNode
}) {
  return (
    <Card withBorder component="section" aria-label={title}>
      <Stack gap="sm">
        <Group justify="space-between">
          <Title order={2} size="h4">
            {title}
          </Title>
          {list.items.length > 0 && <TextLink href={href}>{t.all}</TextLink>}
        </Group>
        <ErrorMessage error={list.error} />
        {list.isPending && <Skeleton height={24} />}
        {!list.isPending && list.items.length === 0 && <Text c="dimmed">{empty}</Text>}
        {children}
      </Stack>
    </Card>
  )
}

function OpenAlerts() {
  const list = useList(alerts.listAlerts, { query: { open: 'true' } })
  return (
    <Few title={t.alerts} href="/alerts?open=true" empty={t.noAlerts} list={list}>
      {list.items.slice(0, MAX_SHOWN).map(({ id, licenseId, count, lastAt }) => (
        <Group key={id} justify="space-between" gap="xs">
          {licenseId === null ? <Text size="sm">{t.webhookDisabled}</Text> : <LicenseKey id={licenseId} />}
          <Text size="sm" c="dimmed">
            {licenseId !== null && `${t.rejectedChecks(count)}, `}
            <When at={lastAt} />
          </Text>
        </Group>
      ))}
    </Few>
  )
}

/** The licenses that expire within 30 days. The bounds are whole hours, so that the query stays the same within an hour. */
function Expiring() {
  const nowMs = Math.floor(Date.now() / MS_PER_HOUR) * MS_PER_HOUR
  const list = useList(licenses.listLicenses, {
    query: {
      status: 'active',
      expiresAfter: new Date(nowMs).toISOString(),
      expiresBefore: new Date(nowMs + 30 * 24 * MS_PER_HOUR).toISOString(),
      sort: 'expiresAt',
      order: 'asc',
    },
  })
  return (
    <Few title={t.expiring} href="/licenses?within=30&status=active" empty={t.noneExpires} list={list}>
      {list.items.slice(0, MAX_SHOWN).map(({ id, key, policy }) => (
        <Group key={id} justify="space-between" gap="xs">
          <TextLink href={`/licenses/${id}`}>
            <span className="mono">{key}</span>
          </TextLink>
          <Text size="sm" c="dimmed">
            <When at={policy.expiresAt} />
          </Text>
        </Group>
      ))}
    </Few>
  )
}

const QUOTAS = ['licenses', 'customers', 'products', 'members'] as const

function Use() {
  const { data, error } = useRead(organizations.readOwnOrganization, {})
  const rows = data
    ? [
        { name: t.rules, used: data.usage.rules.used, limit: data.usage.rules.limit },
        ...QUOTAS.flatMap((name) => {
          const quota = data.quotas[name]
          return quota ? [{ name: t.quotaNames[name], used: quota.used ?? 0, limit: quota.limit }] : []
        }),
      ]
    : []
  return (
    <Card withBorder component="section" aria-label={t.quotas}>
      <Stack gap="sm">
        <Title order={2} size="h4">
          {data ? `${data.name}: ${t.plan} ${data.plan}` : t.plan}
        </Title>
        <ErrorMessage error={error} />
        {rows.map(({ name, used, limit }) => (
          <div key={name}>
            <Group justify="space-between">
              <Text size="sm">{name}</Text>
              <Text size="sm" c="dimmed">
                {used.toLocaleString()} / {limit === null ? text.unlimited : limit.toLocaleString()}
              </Text>
            </Group>
            {limit !== null && (
              <Progress
                value={(100 * used) / Math.max(1, limit)}
                aria-label={name}
                {...(used >= limit && { color: 'red' })}
              />
            )}
          </div>
        ))}
      </Stack>
    </Card>
  )
}

export default function Overview({ me }: { me: Me }) {
  const seesLicenses = me.permissions.includes('licenses.read')
  return (
    <Screen title={t.title}>
      <Checks />
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
        {seesLicenses && <Expiring />}
        {seesLicenses && <OpenAlerts />}
        <Use />
      </SimpleGrid>
    </Screen>
  )
}
