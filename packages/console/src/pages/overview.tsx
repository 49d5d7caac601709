/** The overview: checks by outcome, what needs attention, the licenses that expire next, and limits that are nearly reached. */

import { licenses, organizations } from '@keyward/contract'
import { alerts } from '@keyward/contract/management/activity'
import { Button, SegmentedControl } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { lazy, type ReactNode, Suspense } from 'react'
import { Link } from 'wouter'

import { useList, useRead } from '../api/hooks.ts'
import { useMay } from '../api/me.ts'
import { AlertSentence } from '../parts/alert-sentence.tsx'
import { distance } from '../parts/distance.ts'
import { LimitBars, limitsOf } from '../parts/limits.tsx'
import { LicenseKey, Name } from '../parts/name.tsx'
import { Screen } from '../parts/page-header.tsx'
import { LastDay, Part, TextLink } from '../parts/parts.tsx'
import { ErrorMessage, LoadingRows, State } from '../parts/states.tsx'
import { useUrlFilters } from '../parts/url.ts'
import { Renew } from './licenses/renew.tsx'
import { Checks, type Span, SPANS } from './overview-checks.tsx'

/** Loaded after the rest of the screen, because few people see it. */
const SetUp = lazy(async () => ({ default: (await import('./set-up.tsx')).SetUp }))

const HOUR_MS = 3_600_000
const MAX_SHOWN = 6
/** A limit is shown when this share of it is used. */
const SHOWN_SHARE = 0.5

/** A card with the first items of a list, and a link to the whole list. */
function Few<Item extends { id: string }>({
  title,
  href,
  empty,
  list,
  row,
}: {
  title: string
  href: string
  empty: string
  list: { error: Error | null; isPending: boolean; items: readonly Item[]; hasMore: boolean }
  row: (item: Item) => ReactNode
}) {
  const { items, error, isPending, hasMore } = list
  return (
    <Part
      title={title}
      {...(items.length > 0 && {
        count: hasMore ? `${items.length}+` : items.length,
        action: <TextLink href={href}>Show all</TextLink>,
      })}
    >
      {error ? <ErrorMessage error={error} /> : isPending ? <LoadingRows rows={3} /> : null}
      {!error && !isPending && items.length === 0 && <State>{empty}</State>}
      {items.length > 0 && (
        <ul className="rows">
          {items.slice(0, MAX_SHOWN).map((item) => (
            <li key={item.id}>{row(item)}</li>
          ))}
        </ul>
      )}
    </Part>
  )
}

function OpenAlerts() {
  const list = useList(alerts.listAlerts, { query: { open: 'true' } })
  return (
    <Few
      title="Needs attention"
      href="/alerts?open=true"
      empty="No license is used on more machines than it allows, and no webhook endpoint is disabled."
      list={list}
      row={(alert) => <AlertSentence alert={alert} />}
    />
  )
}

/** The licenses that expire within 30 days. The bounds are whole hours, so that the query stays the same within an hour. */
function Expiring() {
  const may = useMay()
  const nowMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  const list = useList(licenses.listLicenses, {
    query: {
      status: 'active',
      expiresAfter: new Date(nowMs).toISOString(),
      expiresBefore: new Date(nowMs + 30 * 24 * HOUR_MS).toISOString(),
      sort: 'expiresAt',
      order: 'asc',
    },
  })
  return (
    <Few
      title="Expire within 30 days"
      href="/licenses?within=30&status=active"
      empty="No active license expires within 30 days."
      list={list}
      row={(one) => (
        <>
          <div className="grow">
            <bdi className="name">
              <Name id={one.customerId} />
            </bdi>
            <span className="sub">
              <Name id={one.productId} /> <LicenseKey id={one.id} />
            </span>
          </div>
          {one.policy.expiresAt !== null && (
            <span className="expiry">
              {distance(one.policy.expiresAt)}
              <span className="sub">
                <LastDay at={one.policy.expiresAt} />
              </span>
            </span>
          )}
          {may('licenses.write') && <Renew license={one} size="xs" />}
        </>
      )}
    />
  )
}

/** The limits of which a large part is used. */
function Limits() {
  const { data } = useRead(organizations.readOwnOrganization, {})
  const rows = data ? limitsOf(data).filter(({ used, limit }) => used / Math.max(1, limit) >= SHOWN_SHARE) : []
  if (rows.length === 0) return null
  return (
    <Part title="Limits that are nearly reached" action={<TextLink href="/settings">All limits</TextLink>}>
      <LimitBars limits={rows} />
    </Part>
  )
}

function isSpan(value: string | null): value is Span {
  return value !== null && value in SPANS
}

export default function Overview() {
  const may = useMay()
  const [{ hours }, setFilters] = useUrlFilters({ hours: null })
  const span = isSpan(hours) ? hours : '24'
  return (
    <Screen
      title="Overview"
      actions={
        <>
          <SegmentedControl
            value={span}
            onChange={(value) => setFilters({ hours: value })}
            data={Object.entries(SPANS).map(([value, { label }]) => ({ value, label }))}
            aria-label="Checks"
          />
          {may('licenses.write') && (
            <Button component={Link} href="/licenses/new" leftSection={<IconPlus size={16} />}>
              New license
            </Button>
          )}
        </>
      }
    >
      <Suspense>
        <SetUp />
      </Suspense>
      <Checks span={span} />
      {may('licenses.read') && (
        <div className="attention">
          <OpenAlerts />
          <Expiring />
        </div>
      )}
      <Limits />
    </Screen>
  )
}
