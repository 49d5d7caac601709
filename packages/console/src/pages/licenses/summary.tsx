import { customers, type License, licenses, type machines } from '@keyward/contract'
import { products } from '@keyward/contract/management/products'
import { type Template, templates } from '@keyward/contract/management/templates'
import { oneLine } from '@keyward/contract/text'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Fragment, type ReactNode } from 'react'

import { type ItemOf, useRead } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { lastDayText } from '../../parts/days.ts'
import { distance } from '../../parts/distance.ts'
import { EntitlementList } from '../../parts/entitlement-list.tsx'
import { machineName } from '../../parts/let-through.tsx'
import { Copyable, DotBadge, LastDay, TextLink, When } from '../../parts/parts.tsx'
import { counted, text } from '../../text.ts'
import { Dialog } from './dialog.tsx'

/** The number of slots up to which each is drawn. */
const MOST_BOXES = 6
type Machine = ItemOf<typeof machines.listMachines>

/** Returns the text for a license without an expiry: a term that has not started, or "never". */
export function termOf({ policy: { durationDays } }: Pick<License, 'policy'>): string {
  return durationDays === null ? 'never' : text.daysFromFirstUse(durationDays)
}

export function slotsOf({ policy: { leaseSeconds, maxMachines } }: Pick<License, 'policy'>): string {
  return leaseSeconds === null || maxMachines === null
    ? 'held until they are released'
    : `floating, free after ${(leaseSeconds / 60).toLocaleString()} minutes without a check`
}

/** Returns the terms in one phrase, such as "Subscription until 23 Apr 2027, in 5 months". */
export function termText(one: Pick<License, 'policy'>): string {
  const { type, expiresAt } = one.policy
  const name = text.terms[type]
  if (expiresAt === null) return type === 'PERPETUAL' ? name : `${name}, ${termOf(one)}`
  return `${name} until ${lastDayText(expiresAt)}, ${distance(expiresAt)}`
}

/** The machines that hold the slots, one box for each slot. */
function SlotBoxes({ license: { machines }, holders, isRefused }: SummaryProps) {
  const { max } = machines
  if (max === null || max > MOST_BOXES) return null
  const free = Math.max(0, max - holders.length)
  return (
    <div className="slot-boxes">
      {holders.slice(0, max).map((one) => (
        <div key={one.id} className="slot-box" data-state={isRefused ? 'refused' : 'taken'}>
          <bdi className="name trunc">{machineName(one)}</bdi>
          <span className="sub">{distance(one.lastSeenAt)}</span>
        </div>
      ))}
      {Array.from({ length: free }, (_, index) => (
        <div key={index} className="slot-box" data-state="free">
          free
        </div>
      ))}
    </div>
  )
}

function Differs() {
  return <DotBadge color="blue">differs from the template</DotBadge>
}

function Facts({ facts }: { facts: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className="kv">
      {Object.entries(facts).map(([term, fact]) => (
        <Fragment key={term}>
          <dt>{term}</dt>
          <dd>{fact}</dd>
        </Fragment>
      ))}
    </dl>
  )
}

interface SummaryProps {
  license: License
  holders: readonly Machine[]
  isRefused: boolean
}

/** The slots, the terms and the entitlements of a license. */
export function SummaryCard(props: SummaryProps) {
  const { license: one, isRefused } = props
  const { used, max } = one.machines
  const { data: template } = useRead(
    templates.readTemplate,
    one.templateId === null ? null : { params: { id: one.templateId } },
  )
  /** A value, with a mark if one of the fields differs from the template. */
  const own = (value: ReactNode, ...names: (keyof Template['policy'])[]) => (
    <>
      {value}{' '}
      {template !== undefined && names.some((name) => template.policy[name] !== one.policy[name]) && <Differs />}
    </>
  )
  const { policy, graceEndsAt, externalId } = one
  const facts: Readonly<Record<string, ReactNode>> = {
    ...(template && { Template: <TextLink href={`/templates/${template.id}`}>{template.name}</TextLink> }),
    Terms: own(text.terms[policy.type], 'type', 'durationDays'),
    'Machines at the same time': own(max ?? 'no limit', 'maxMachines'),
    Expires: policy.expiresAt === null ? termOf(one) : <LastDay at={policy.expiresAt} />,
    ...(graceEndsAt !== null && { 'Grace ends': <LastDay at={graceEndsAt} /> }),
    Slots: own(slotsOf(one), 'leaseSeconds'),
    'App may free': own(policy.maxReleases ?? 'no limit', 'maxReleases'),
    'Grace period in days': own(policy.graceDays, 'graceDays'),
    Files: own(text.files(policy), 'fileDays'),
    Created: <When at={one.createdAt} />,
  }
  const more: Readonly<Record<string, ReactNode>> = {
    ...(externalId !== null && { 'External id': <Copyable value={externalId} /> }),
    Id: <Copyable value={one.id} />,
    ...Object.fromEntries(
      Object.entries(one.metadata).map(([name, value]) => [
        oneLine(name),
        <bdi key={name}>{oneLine(typeof value === 'string' ? value : JSON.stringify(value))}</bdi>,
      ]),
    ),
  }
  return (
    <section className="card summary" aria-label="Terms">
      <div className="summary-head">
        <h2 className="card-title">Machine slots</h2>
        <span className={isRefused ? 'warning-text' : 'dimmed'}>
          {max === null ? `${used} held, no limit` : `${used} of ${max} held`}
        </span>
      </div>
      <SlotBoxes {...props} />
      <Facts facts={facts} />
      <Entitlements license={one} template={template} />
      <details>
        <summary>More</summary>
        <Facts facts={more} />
      </details>
    </section>
  )
}

/** The customer of a license, with the address to write to and the number of licenses. */
export function CustomerCard({ id }: { id: string }) {
  const { data } = useRead(customers.readCustomer, { params: { id } })
  const query = { customerId: id, limit: 1, total: 'true' } as const
  const { total } = useRead(licenses.listLicenses, { query }).data ?? {}
  if (!data) return null
  return (
    <section className="card summary" aria-label="Customer">
      <TextLink href={`/customers/${id}`}>
        <bdi>{data.name ?? data.email}</bdi>
      </TextLink>
      <Copyable value={data.email} label="Copy the e-mail address" />
      {total !== undefined && <span className="sub">{counted(total, 'license')}</span>}
    </section>
  )
}

/** Returns whether two objects have the same members, in any order. */
function isSameRecord(one: Readonly<Record<string, unknown>>, other: Readonly<Record<string, unknown>>): boolean {
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
}

export function Entitlements({ license: one, template }: { license: License; template: Template | undefined }) {
  const may = useMay()
  const { data } = useRead(products.readProduct, { params: { id: one.productId } })
  const [isEditing, { open, close }] = useDisclosure(false)
  const defaults = data?.entitlements ?? {}
  return (
    <section className="summary-part" aria-label="Entitlements">
      <div className="summary-head">
        <h2 className="card-title">Entitlements</h2>
        {may('licenses.write') && (
          <Button size="xs" variant="default" onClick={open}>
            Change
          </Button>
        )}
      </div>
      <EntitlementList defaults={defaults} overrides={one.entitlements} />
      {template !== undefined && !isSameRecord(template.entitlements, one.entitlements) && <Differs />}
      {isEditing && <Dialog license={one} opened="entitlements" onClose={close} />}
    </section>
  )
}
