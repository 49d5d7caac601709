/** The command palette (Ctrl-K): opens a section, or finds a license, a customer or a machine. */

import { searchResults } from '@keyward/contract/management/search'
import { Modal, NavLink, Stack, Text, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useState } from 'react'
import { useLocation } from 'wouter'

import { call, queryString } from '../api/client.ts'
import { text } from '../text.ts'
import type { Section } from './sections.ts'

interface Found {
  id: string
  path: string
  kind: string
  label: string
}

const SETTLE_MS = 150

/** Finds licenses, customers and machines that the member may read. */
async function find(typed: string): Promise<Found[]> {
  const path = `/search${queryString({ q: typed })}`
  const { licenses, customers, machines } = await call({ method: 'GET', path }, searchResults)
  const { license, customer, machine } = text.palette
  return [
    ...licenses.map(({ id, key }) => ({ id, path: `/licenses/${id}`, kind: license, label: key })),
    ...customers.map(({ id, email, name }) => ({
      id,
      path: `/customers/${id}`,
      kind: customer,
      label: name === null ? email : `${name}, ${email}`,
    })),
    ...machines.map(({ id, licenseId, machineId, hostname }) => ({
      id,
      path: `/licenses/${licenseId}`,
      kind: machine,
      label: hostname === null ? machineId : `${hostname}, ${machineId}`,
    })),
  ]
}

export function Palette({ onClose, sections }: { onClose: () => void; sections: readonly Section[] }) {
  const [, navigate] = useLocation()
  const [typed, setTyped] = useState('')
  const [chosen, setChosen] = useState(0)
  const [settled] = useDebouncedValue(typed.trim(), SETTLE_MS)
  const search = useQuery({
    queryKey: ['find', settled],
    queryFn: () => find(settled),
    enabled: settled.length >= 3,
  })
  const matching = sections
    .filter(({ label }) => label.toLowerCase().includes(typed.trim().toLowerCase()))
    .map(({ path, label }) => ({ id: path, path, kind: text.palette.goTo, label }))
  const found = [...(settled.length >= 3 ? (search.data ?? []) : []), ...matching]
  const close = () => {
    setTyped('')
    setChosen(0)
    onClose()
  }
  const go = (path: string | undefined) => {
    if (path === undefined) return
    close()
    navigate(path)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) {
      event.preventDefault()
      setChosen((chosen + step + found.length) % Math.max(1, found.length))
    } else if (event.key === 'Enter') go(found[chosen]?.path)
  }
  return (
    <Modal
      opened
      onClose={close}
      title={text.nav.find}
      closeButtonProps={{ 'aria-label': text.close }}
      size="lg"
      yOffset="12vh"
      transitionProps={{ duration: 0 }}
    >
      <Stack gap="sm">
        <TextInput
          value={typed}
          onChange={(event) => {
            setTyped(event.currentTarget.value)
            setChosen(0)
          }}
          onKeyDown={onKeyDown}
          placeholder={text.palette.placeholder}
          aria-label={text.palette.placeholder}
          size="md"
          data-autofocus
        />
        <div role="listbox" aria-label={text.nav.find}>
          {found.map(({ id, path, kind, label }, index) => (
            <NavLink
              key={id}
              component="button"
              role="option"
              aria-selected={index === chosen}
              active={index === chosen}
              label={label}
              description={kind}
              onClick={() => go(path)}
            />
          ))}
        </div>
        {found.length === 0 && (
          <Text size="sm" c="dimmed" role="status">
            {text.palette.nothing}
          </Text>
        )}
      </Stack>
    </Modal>
  )
}
