import { type License, machines } from '@keyward/contract'
import { oneLine } from '@keyward/contract/text'
import { Button } from '@mantine/core'
import { Link } from 'wouter'

import { type ItemOf, useCall } from '../../api/hooks.ts'
import { useMay } from '../../api/me.ts'
import { Ago, DotBadge } from '../../parts/parts.tsx'
import { type Column, type ListState, ListTable } from '../../parts/table.tsx'
import { text } from '../../text.ts'
import type { Refusal } from './refusals.tsx'
type Machine = ItemOf<typeof machines.listMachines>

/** A machine that holds a slot, or a machine that was refused. */
interface Row {
  id: string
  machineId: string
  hostname: string | null
  lastAt: string
  holder: Machine | null
  refused: number
}

function rowsOf(holders: readonly Machine[], refusals: readonly Refusal[]): Row[] {
  return [
    ...holders.map((holder) => ({ ...holder, lastAt: holder.lastSeenAt, holder, refused: 0 })),
    ...refusals.map(({ machineId, lastAt, count }) => ({
      id: machineId,
      machineId,
      hostname: null,
      lastAt,
      holder: null,
      refused: count,
    })),
  ]
}

export function MachinesTable({
  license: { id: licenseId, policy },
  list,
  refusals,
}: {
  license: License
  list: ListState<Machine>
  refusals: readonly Refusal[]
}) {
  const may = useMay()
  const release = useCall(machines.removeMachine, { done: 'Freed the slot.' })
  const columns: Column<Row>[] = [
    {
      title: 'Machine',
      cell: ({ machineId, hostname, refused }) => (
        <>
          {hostname !== null && <bdi className="name">{oneLine(hostname)}</bdi>}
          {hostname === null ? (
            <span className="mono">{oneLine(machineId)}</span>
          ) : (
            <span className="sub mono">{oneLine(machineId)}</span>
          )}
          {refused > 0 && (
            <>
              {' '}
              <DotBadge color="orange" isPill>
                {`Refused ${refused.toLocaleString()}×`}
              </DotBadge>
            </>
          )}
        </>
      ),
    },
    {
      title: 'Holds a slot since',
      cell: ({ holder }) =>
        holder === null ? <span className="faint">has no slot</span> : <Ago at={holder.firstSeenAt} />,
      isMinor: true,
    },
    { title: 'Last seen', cell: ({ lastAt }) => <Ago at={lastAt} />, isNumber: true },
  ]
  if (policy.leaseSeconds !== null)
    columns.splice(2, 0, {
      title: 'Lease ends',
      cell: ({ holder }) => <Ago at={holder?.leaseEndsAt ?? null} never="" />,
    })
  columns.push({
    title: text.actions,
    cell: ({ machineId, holder }) =>
      holder === null ? (
        <Button
          size="xs"
          variant="default"
          component={Link}
          href={`/why?${new URLSearchParams({ license: licenseId, machine: machineId }).toString()}`}
        >
          Why?
        </Button>
      ) : (
        may('licenses.write') && (
          <Button
            size="xs"
            variant="default"
            onClick={() => release.mutate({ params: { id: licenseId, machineId: holder.id } })}
            loading={release.isPending && release.variables?.params.machineId === holder.id}
          >
            Free
          </Button>
        )
      ),
  })
  return (
    <ListTable
      list={{ ...list, items: rowsOf(list.items, refusals) }}
      columns={columns}
      empty="No machine uses this license yet."
      label="Machines"
      hasTwoLines
    />
  )
}
