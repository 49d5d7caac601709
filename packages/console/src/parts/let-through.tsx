/** Menus that help a refused machine: an exclusion for some time, and the release of the slot of another machine. */

import { accessRules, machines } from '@keyward/contract'
import { oneLine } from '@keyward/contract/text'
import { Button, Menu } from '@mantine/core'
import { IconChevronDown } from '@tabler/icons-react'

import { call } from '../api/client.ts'
import { type ItemOf, useCall } from '../api/hooks.ts'
import { distance } from './distance.ts'

const t = {
  done: (machine: string, end: string | null) =>
    end === null ? `Let ${machine} through for ever.` : `Let ${machine} through. This ends ${end}.`,
}
const DAY_MS = 86_400_000
const DURATIONS = [
  { label: 'For 1 day', days: 1 },
  { label: 'For 7 days', days: 7 },
  { label: 'For ever', days: null },
] as const

export function LetThroughMenu({
  licenseId,
  machineId,
  isPrimary = false,
  onDone,
}: {
  licenseId: string
  machineId: string
  isPrimary?: boolean
  onDone?: () => void
}) {
  const create = useCall(accessRules.createAccessRule, {
    done: ({ expiresAt }) => t.done(oneLine(machineId), expiresAt === null ? null : distance(expiresAt)),
    undo: ({ id }) => call(accessRules.deleteAccessRule, { params: { id } }),
    ...(onDone && { onDone }),
  })
  const allow = (days: number | null) => {
    const expiresAt = days === null ? null : new Date(Date.now() + days * DAY_MS).toISOString()
    const rule = { kind: 'EXCLUSION', type: 'HWID', value: machineId, scope: 'LICENSE', scopeId: licenseId } as const
    create.mutate({ body: { ...rule, expiresAt } })
  }
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          variant={isPrimary ? 'filled' : 'default'}
          rightSection={<IconChevronDown size={14} />}
          loading={create.isPending}
        >
          Let through
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Skips blacklists and the machine limit</Menu.Label>
        {DURATIONS.map(({ label, days }) => (
          <Menu.Item key={label} onClick={() => allow(days)}>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

type Machine = ItemOf<typeof machines.listMachines>

/** Returns the name by which a person knows a machine. */
export function machineName({ hostname, machineId }: Pick<Machine, 'hostname' | 'machineId'>): string {
  return oneLine(hostname ?? machineId)
}

export function FreeSlotMenu({ licenseId, holders }: { licenseId: string; holders: readonly Machine[] }) {
  const release = useCall(machines.removeMachine, { done: 'Freed the slot.' })
  if (holders.length === 0) return null
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" rightSection={<IconChevronDown size={14} />} loading={release.isPending}>
          Free a slot
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Takes the slot from this machine</Menu.Label>
        {holders.map((one) => (
          <Menu.Item
            key={one.id}
            rightSection={<span className="faint">{distance(one.lastSeenAt)}</span>}
            onClick={() => release.mutate({ params: { id: licenseId, machineId: one.id } })}
          >
            {machineName(one)}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
