/** The command palette (Ctrl-K): opens a section, finds a license by key, or finds a customer by e-mail address. */

import { customer, license, page } from '@keyward/contract'
import { type Me } from '@keyward/contract/management/sign-in'
import { Modal, NavLink, Stack, Text, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useState } from 'react'
import { useLocation } from 'wouter'

import { call, queryString } from '../api/client.ts'
import { text } from '../text.ts'
import type { Section } from './sections.ts'

interface Found {
  path: string
  kind: string
  label: string
}

const SETTLE_MS = 150

/** Finds a license by its complete key, as typed or in upper case, and customers by their complete e-mail address. */
async function find(typed: string, { permissions }: Me): Promise<Found[]> {
  const searches: Promise<Found[]>[] = []
  if (typed.includes('@') && permissions.includes('customers.read'))
    searches.push(
      call({ method: 'GET', path: `/customers${queryString({ email: typed, limit: 5 })}` }, page(customer)).then(
        ({ data }) =>
          data.map(({ id, email, name }) => ({
            path: `/customers/${id}`,
            kind: text.palette.customer,
            label: name === null ? email : `${name}, ${email}`,
          })),
      ),
    )
  if (permissions.includes('licenses.read'))
    for (const key of new Set([typed, typed.toUpperCase().replaceAll(' ', '')]))
      searches.push(
        call({ method: 'GET', path: `/licenses${queryString({ key })}` }, page(license)).then(({ data }) =>
          data.map(({ id }) => ({ path: `/licenses/${id}`, kind: text.palette.license, label: key })),
        ),
      )
  return (await Promise.all(searches)).flat()
}

export function Palette({ onClose, sections, me }: { onClose: () => void; sections: readonly Section[]; me: Me }) {
  const [, navigate] = useLocation()
  const [typed, setTyped] = useState('')
  const [chosen, setChosen] = useState(0)
  const [settled] = useDebouncedValue(typed.trim(), SETTLE_MS)
  const search = useQuery({
    queryKey: ['find', settled],
    queryFn: () => find(settled, me),
    enabled: settled.length >= 3,
  })
  const matching = sections
    .filter(({ label }) => label.toLowerCase().includes(typed.trim().toLowerCase()))
    .map(({ path, label }) => ({ path, kind: text.palette.goTo, label }))
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
          {found.map(({ path, kind, label }, index) => (
            <NavLink
              key={path}
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
