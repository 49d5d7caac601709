import { customers, type License, type machines } from '@keyward/contract'
import { products } from '@keyward/contract/management/products'
import { type Template, templates } from '@keyward/contract/management/templates'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'

import { type ItemOf, useRead } from '../../api/hooks.ts'
import { lastDayText } from '../../parts/days.ts'
import { EntitlementList } from '../../parts/entitlement-list.tsx'
import { machineName } from '../../parts/let-through.tsx'
import { Copyable, distance, DotBadge, LastDay, TextLink, When } from '../../parts/parts.tsx'
import { text } from '../../text.ts'
import { Dialog } from './dialog.tsx'

const t = text.license
/** The number of slots up to which each is drawn. */
const MOST_BOXES = 6
type Machine = ItemOf<typeof machines.listMachines>

/** Returns the text for a license without an expiry: a term that has not started, or "never". */
export function termOf({ policy: { durationDays } }: Pick<License, 'policy'>): string {
  return durationDays === null ? text.never : text.licenses.daysFromFirstUse(durationDays)
}

export function slotsOf({ policy: { leaseSeconds, maxMachines } }: Pick<License, 'policy'>): string {
  return leaseSeconds === null || maxMachines === null ? t.fixedSlots : t.floatingSlots(leaseSeconds / 60)
}

/** Returns the terms in one phrase, such as "Subscription until 23 Apr 2027, in 5 months". */
export function termText(one: Pick<License, 'policy'>): string {
  const { type, expiresAt } = one.policy
  const name = text.licenses.types[type]
  if (expiresAt === null) return type === 'PERPETUAL' ? name : `${name}, ${termOf(one)}`
  return t.until(name, lastDayText(expiresAt), distance(expiresAt))
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
          {t.free}
        </div>
      ))}
    </div>
  )
}

interface SummaryProps {
  license: License
  holders: readonly Machine[]
  isRefused: boolean
}

/** The slots, the terms and the entitlements of a license. */
export function SummaryCard({ canWrite, ...props }: SummaryProps & { canWrite: boolean }) {
  const { license: one, isRefused } = props
  const { used, max } = one.machines
  const { data: template } = useRead(
    templates.readTemplate,
    one.templateId === null ? null : { params: { id: one.templateId } },
  )
  const own = (...names: (keyof Template['policy'])[]) =>
    template !== undefined &&
    names.some((name) => template.policy[name] !== one.policy[name]) && (
      <DotBadge color="blue">{text.templates.differs}</DotBadge>
    )
  return (
    <section className="card summary" aria-label={t.summary}>
      <div className="summary-head">
        <h2 className="card-title">{t.machineSlots}</h2>
        <span className={isRefused ? 'warning-text' : 'dimmed'}>{t.held(used, max)}</span>
      </div>
      <SlotBoxes {...props} />
      <dl className="kv">
        {template !== undefined && (
          <>
            <dt>{text.templates.one}</dt>
            <dd>
              <TextLink href={`/templates/${template.id}`}>{template.name}</TextLink>
            </dd>
          </>
        )}
        <dt>{text.licenses.terms}</dt>
        <dd>
          {text.licenses.types[one.policy.type]} {own('type', 'durationDays')}
        </dd>
        <dt>{text.licenses.maxMachines}</dt>
        <dd>
          {max ?? text.unlimited} {own('maxMachines')}
        </dd>
        <dt>{text.licenses.expires}</dt>
        <dd>{one.policy.expiresAt === null ? termOf(one) : <LastDay at={one.policy.expiresAt} />}</dd>
        {one.graceEndsAt !== null && (
          <>
            <dt>{t.graceEnds}</dt>
            <dd>
              <LastDay at={one.graceEndsAt} />
            </dd>
          </>
        )}
        <dt>{t.slots}</dt>
        <dd>
          {slotsOf(one)} {own('leaseSeconds')}
        </dd>
        <dt>{t.releases}</dt>
        <dd>
          {one.policy.maxReleases ?? text.unlimited} {own('maxReleases')}
        </dd>
        <dt>{text.licenses.graceDays}</dt>
        <dd>
          {one.policy.graceDays} {own('graceDays')}
        </dd>
        <dt>{t.files}</dt>
        <dd>
          {t.fileDays(one.policy.fileDays)} {own('fileDays')}
        </dd>
        <dt>{text.licenses.createdOn}</dt>
        <dd>
          <When at={one.createdAt} />
        </dd>
        {one.externalId !== null && (
          <>
            <dt>{text.customers.externalId}</dt>
            <dd>
              <Copyable value={one.externalId} />
            </dd>
          </>
        )}
        <dt>Id</dt>
        <dd>
          <Copyable value={one.id} />
        </dd>
      </dl>
      <Entitlements license={one} canWrite={canWrite} template={template} />
    </section>
  )
}

/** The customer of a license, with the address to write to. */
export function CustomerCard({ id }: { id: string }) {
  const { data } = useRead(customers.readCustomer, { params: { id } })
  if (!data) return null
  return (
    <section className="card summary" aria-label={text.licenses.customer}>
      <TextLink href={`/customers/${id}`}>
        <bdi>{data.name ?? data.email}</bdi>
      </TextLink>
      <Copyable value={data.email} label={t.copyEmail} />
    </section>
  )
}

/** Returns whether two objects have the same members, in any order. */
function isSameRecord(one: Readonly<Record<string, unknown>>, other: Readonly<Record<string, unknown>>): boolean {
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
}

export function Entitlements({
  license: one,
  canWrite,
  template,
}: {
  license: License
  canWrite: boolean
  template: Template | undefined
}) {
  const { data } = useRead(products.readProduct, { params: { id: one.productId } })
  const [isEditing, { open, close }] = useDisclosure(false)
  const defaults = data?.entitlements ?? {}
  return (
    <section className="summary-part" aria-label={text.entitlements.title}>
      <div className="summary-head">
        <h2 className="card-title">{text.entitlements.title}</h2>
        {canWrite && (
          <Button size="xs" variant="default" onClick={open}>
            {text.entitlements.edit}
          </Button>
        )}
      </div>
      <EntitlementList defaults={defaults} overrides={one.entitlements} />
      {template !== undefined && !isSameRecord(template.entitlements, one.entitlements) && (
        <DotBadge color="blue">{text.templates.differs}</DotBadge>
      )}
      {isEditing && <Dialog license={one} opened="entitlements" onClose={close} />}
    </section>
  )
}
