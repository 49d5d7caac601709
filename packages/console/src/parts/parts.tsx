import type { Code, LicenseStatus } from '@keyward/contract'
import { ActionIcon, Button, Center, CopyButton, Group, Loader, Stack, Text, Tooltip } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconCheck, IconCopy } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { Link } from 'wouter'

import { text } from '../text.ts'
import { Window } from './window.tsx'

export { Screen } from './page-header.tsx'
export { ErrorMessage } from './states.tsx'

// Lists show hundreds of links, times and badges. Plain elements render several times faster than components of the library.

/** A link to another screen. */
export function TextLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <Link href={href} className="link">
      {children}
    </Link>
  )
}

/** A section of a screen as a card, with an action at the end of its heading. */
export function Part({
  title,
  hint,
  count,
  action,
  children,
}: {
  title: string
  hint?: string
  count?: number | string
  action?: ReactNode
  children: ReactNode
}) {
  return (
    <section className="card part" aria-label={title}>
      <div className="card-head">
        <h2>{title}</h2>
        {count !== undefined && <span className="count">{count}</span>}
        {action && <div className="card-action">{action}</div>}
        {hint !== undefined && <p className="card-hint">{hint}</p>}
      </div>
      <div className="card-body">{children}</div>
    </section>
  )
}

const localTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

/** A time in the reader's time zone, with UTC in its tooltip. */
export function When({ at, never = text.never }: { at: string | null; never?: string }) {
  if (at === null) return <span className="dimmed">{never}</span>
  return (
    <time dateTime={at} className="time" title={`${at.replace('T', ' ').replace('Z', '')} UTC`}>
      {localTime.format(new Date(at))}
    </time>
  )
}

const DIVISIONS = [
  { unit: 'minute', ms: 60_000 },
  { unit: 'hour', ms: 3_600_000 },
  { unit: 'day', ms: 86_400_000 },
] as const
/** The age in days from which a date says more than a number of days. */
const MAX_DAYS = 45

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })
const localDay = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

/** Returns the distance of a time from now in words, such as "12 min. ago" or "in 5 days". */
export function distance(at: string): string {
  const ms = Date.parse(at) - Date.now()
  const size = Math.abs(ms)
  if (size < DIVISIONS[0].ms) return relative.format(0, 'second')
  if (size > MAX_DAYS * DIVISIONS[2].ms) return localDay.format(new Date(at))
  const division = DIVISIONS.findLast((one) => size >= one.ms) ?? DIVISIONS[0]
  return relative.format(Math.trunc(ms / division.ms), division.unit)
}

/** A time as its distance from now, with the exact time in its tooltip. */
export function Ago({ at, never = text.never }: { at: string | null; never?: string }) {
  if (at === null) return <span className="faint">{never}</span>
  return (
    <time dateTime={at} className="time" title={localTime.format(new Date(at))}>
      {distance(at)}
    </time>
  )
}

/** A license key whose hyphens are paler, so that its groups can be read aloud. */
export function KeyText({ value }: { value: string }) {
  const groups = value.split('-')
  return (
    <span className="key">
      {groups.map((group, index) => (
        <span key={index}>
          {index > 0 && <i>-</i>}
          {group}
        </span>
      ))}
    </span>
  )
}

/** Text in a monospaced font, with a button that copies it. */
export function Copyable({ value, label = text.copy }: { value: string; label?: string }) {
  return (
    <Group gap={4} wrap="nowrap" align="center">
      <span className="mono">{value}</span>
      <CopyButton value={value}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? text.copied : label}>
            <ActionIcon
              variant="subtle"
              size="sm"
              color={copied ? 'teal' : 'gray'}
              aria-label={copied ? text.copied : label}
              onClick={(event) => {
                event.stopPropagation()
                copy()
              }}
            >
              {copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </Group>
  )
}

/** A label with a colored dot. `color` is a color of the theme. */
export function DotBadge({ color, children, role }: { color: string; children: ReactNode; role?: 'status' }) {
  return (
    <span className="dot-badge" data-color={color} role={role}>
      {children}
    </span>
  )
}

const STATUS_COLORS: Record<LicenseStatus, string> = {
  active: 'teal',
  suspended: 'yellow',
  expired: 'gray',
  revoked: 'red',
}

export function StatusBadge({ status }: { status: LicenseStatus }) {
  return <DotBadge color={STATUS_COLORS[status]}>{text.statuses[status]}</DotBadge>
}

export function CodeBadge({ code }: { code: Code }) {
  return <DotBadge color={code === 'VALID' ? 'teal' : 'red'}>{text.codes[code]}</DotBadge>
}

export function Waiting() {
  return (
    <Center py="xl">
      <Loader aria-label={text.loading} />
    </Center>
  )
}

/** A button in a row of a table, with an icon and a tooltip. */
export function IconButton({ label, icon, onClick }: { label: string; icon: ReactNode; onClick: () => void }) {
  return (
    <button type="button" className="icon-button" aria-label={label} title={label} onClick={onClick}>
      {icon}
    </button>
  )
}

/** A button that shows the consequence and requires a confirmation before it acts. */
export function ConfirmButton({
  label,
  title,
  consequence,
  onConfirm,
  color = 'red',
  isPending = false,
  size,
  icon,
  isDisabled = false,
}: {
  label: string
  title: string
  consequence: ReactNode
  onConfirm: () => Promise<unknown>
  color?: string
  isPending?: boolean
  size?: string
  /** An icon that replaces the label. The label is then the tooltip. */
  icon?: ReactNode
  isDisabled?: boolean
}) {
  const [opened, { open, close }] = useDisclosure(false)
  return (
    <>
      {icon === undefined ? (
        <Button variant="default" onClick={open} disabled={isDisabled} {...(size !== undefined && { size })}>
          {label}
        </Button>
      ) : (
        <IconButton label={label} icon={icon} onClick={open} />
      )}
      {opened && (
        <Window onClose={close} title={title} centered>
          <Stack>
            <Text size="sm">{consequence}</Text>
            <Group justify="flex-end">
              <Button variant="default" onClick={close} data-autofocus>
                {text.cancel}
              </Button>
              <Button color={color} loading={isPending} onClick={() => void onConfirm().then(close, () => undefined)}>
                {label}
              </Button>
            </Group>
          </Stack>
        </Window>
      )}
    </>
  )
}

/** A term with its value in the summary of a detail screen. */
export function Fact({ term, children }: { term: string; children: ReactNode }) {
  return (
    <div>
      <Text size="xs" c="dimmed" component="dt">
        {term}
      </Text>
      <Text size="sm" component="dd" m={0}>
        {children}
      </Text>
    </div>
  )
}
