import type { Code, LicenseStatus } from '@keyward/contract'
import {
  ActionIcon,
  Alert,
  Button,
  Center,
  CopyButton,
  Group,
  Loader,
  Stack,
  Text,
  Title,
  Tooltip,
} from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconCheck, IconCopy } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { Link } from 'wouter'

import { text } from '../text.ts'
import { Window } from './window.tsx'

// Lists show hundreds of links, times and badges. Plain elements render several times faster than components of the library.

/** A link to another screen. */
export function TextLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <Link href={href} className="link">
      {children}
    </Link>
  )
}

/** The heading of a screen, with its actions at the right. */
export function Screen({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <Stack className="page" gap="lg">
      <Group justify="space-between" align="center">
        <Title order={1} size="h2">
          {title}
        </Title>
        <Group gap="xs">{actions}</Group>
      </Group>
      {children}
    </Stack>
  )
}

/** A section of a screen, with an action at the right of its heading. */
export function Part({
  title,
  hint,
  action,
  children,
}: {
  title: string
  hint?: string
  action?: ReactNode
  children: ReactNode
}) {
  return (
    <Stack gap="sm" component="section" aria-label={title}>
      <Group justify="space-between">
        <Title order={2} size="h4">
          {title}
        </Title>
        {action}
      </Group>
      {hint !== undefined && (
        <Text size="sm" c="dimmed">
          {hint}
        </Text>
      )}
      {children}
    </Stack>
  )
}

export function ErrorMessage({ error }: { error: Error | null }) {
  if (!error) return null
  return (
    <Alert color="red" title={text.failed} role="alert">
      {error.message}
    </Alert>
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
