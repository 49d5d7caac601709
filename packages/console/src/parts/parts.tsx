import type { Code, LicenseStatus } from '@keyward/contract'
import { ActionIcon, Card, Center, CopyButton, Group, Loader, Menu, SimpleGrid, Text, Tooltip } from '@mantine/core'
import { IconCheck, IconCopy, IconDots } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { Link } from 'wouter'

import { text } from '../text.ts'
import { lastDayText } from './days.ts'
import { distance } from './distance.ts'

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
export function When({ at, never = 'never' }: { at: string | null; never?: string }) {
  if (at === null) return <span className="dimmed">{never}</span>
  return (
    <time dateTime={at} className="time" title={`${at.replace('T', ' ').replace('Z', '')} UTC`}>
      {localTime.format(new Date(at))}
    </time>
  )
}

/** A time as its distance from now, with the exact time in its tooltip. */
export function Ago({ at, never = 'never' }: { at: string | null; never?: string }) {
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

/** The last day of a term. */
export function LastDay({ at }: { at: string }) {
  return (
    <time dateTime={at} className="time" title={localTime.format(new Date(at))}>
      {lastDayText(at)}
    </time>
  )
}

/** A button that copies a value. */
export function CopyIcon({ value, label = 'Copy' }: { value: string; label?: string }) {
  return (
    <CopyButton value={value}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? 'Copied' : label}>
          <ActionIcon
            variant="subtle"
            size="sm"
            color={copied ? 'teal' : 'gray'}
            aria-label={copied ? 'Copied' : label}
            onClick={copy}
          >
            {copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  )
}

/** Text in a monospaced font, with a button that copies it. */
export function Copyable({ value, label = 'Copy' }: { value: string; label?: string }) {
  return (
    <Group gap={4} wrap="nowrap" align="center">
      <span className="mono">{value}</span>
      <CopyIcon value={value} label={label} />
    </Group>
  )
}

/** A label with a colored dot. `color` is a color of the theme. */
export function DotBadge({
  color,
  children,
  role,
  isPill = false,
}: {
  color: string
  children: ReactNode
  role?: 'status'
  /** Whether the label is a pill in a table too. */
  isPill?: boolean
}) {
  return (
    <span className="dot-badge" data-color={color} data-pill={isPill ? '' : undefined} role={role}>
      {children}
    </span>
  )
}

const STATUS_COLORS: Record<LicenseStatus, string> = {
  active: 'teal',
  grace: 'yellow',
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
      <Loader role="status" aria-label="Loading" />
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

/** A card with facts by their terms, at most `most` beside each other. */
export function Facts({ facts, most = 3 }: { facts: Readonly<Record<string, ReactNode>>; most?: number }) {
  return (
    <Card withBorder>
      <SimpleGrid cols={{ base: 1, xs: Math.min(2, most), md: most }} component="dl" m={0}>
        {Object.entries(facts).map(([term, fact]) => (
          <div key={term}>
            <Text size="xs" c="dimmed" component="dt">
              {term}
            </Text>
            <Text size="sm" component="dd" m={0}>
              {fact}
            </Text>
          </div>
        ))}
      </SimpleGrid>
    </Card>
  )
}

/** A button that opens the menu of all other actions. */
export function MoreMenu({ label = 'More actions', children }: { label?: string; children: ReactNode }) {
  return (
    <Menu position="bottom-end" width={208}>
      <Menu.Target>
        <ActionIcon variant="default" size="var(--h-control)" aria-label={label}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>{children}</Menu.Dropdown>
    </Menu>
  )
}
