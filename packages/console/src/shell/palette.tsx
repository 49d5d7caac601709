/** The search (Ctrl-K, Cmd-K): finds and opens resources, commands and sections. It works with the keyboard alone. */

import { search as finding } from '@keyward/contract/management/search'
import { type Me } from '@keyward/contract/management/sign-in'
import { Group as Row, Kbd, Loader, Stack, Text, TextInput, UnstyledButton } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'

import { call } from '../api/client.ts'
import { Window } from '../parts/window.tsx'
import { foundGroups, type Group, localGroups, pastedValue } from './finds.ts'
import type { Section } from './sections.ts'

const PLACEHOLDER = 'Paste a key, an e-mail address, a machine id or an address, or type a command'
/** The pause in typing, in milliseconds, after which a request is sent. */
const SETTLE_MS = 60
const LIST_ID = 'found'

/** Searches on the server for the text at which the person paused. Keeps the earlier results until the next ones arrive. */
function useFound(typed: string, me: Me): { groups: Group[]; isSearching: boolean } {
  const [settled] = useDebouncedValue(typed, SETTLE_MS)
  const search = useQuery({
    queryKey: ['search', settled],
    queryFn: () => call(finding.search, { query: { q: settled } }),
    enabled: settled !== '' && me.kind !== 'OPERATOR',
    placeholderData: keepPreviousData,
  })
  if (typed === '' || me.kind === 'OPERATOR') return { groups: [], isSearching: false }
  return { groups: search.data ? foundGroups(search.data) : [], isSearching: search.isFetching || settled !== typed }
}

/** Shows the offers of all groups as options of one list. `chosen` is the index of the active option. */
function Offers({
  groups,
  chosen,
  onOpen,
}: {
  groups: readonly Group[]
  chosen: number
  onOpen: (path: string) => void
}) {
  const active = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    active.current?.scrollIntoView({ block: 'nearest' })
  }, [chosen])
  let number = 0
  return (
    <div role="listbox" id={LIST_ID} aria-label="Search or jump to…" className="offers">
      {groups.map(({ title, offers }) => (
        <div key={title} role="group" aria-label={title}>
          <Text size="xs" c="dimmed" fw={600} px="xs" pt="xs" aria-hidden="true">
            {title}
          </Text>
          {offers.map(({ path, label, detail }) => {
            const index = number++
            return (
              <UnstyledButton
                key={path}
                ref={index === chosen ? active : null}
                id={`${LIST_ID}-${index}`}
                role="option"
                tabIndex={-1}
                aria-selected={index === chosen}
                className="offer"
                onClick={() => onOpen(path)}
              >
                <Text size="sm" truncate>
                  {label}
                </Text>
                <Text size="xs" c="dimmed" truncate>
                  {detail}
                </Text>
              </UnstyledButton>
            )
          })}
        </div>
      ))}
    </div>
  )
}

function Help() {
  return (
    <Row gap="md" c="dimmed" visibleFrom="sm">
      <Text size="xs">
        <Kbd size="xs">↑</Kbd> <Kbd size="xs">↓</Kbd> to choose
      </Text>
      <Text size="xs">
        <Kbd size="xs">↵</Kbd> to open
      </Text>
      <Text size="xs">
        <Kbd size="xs">Esc</Kbd> Close
      </Text>
    </Row>
  )
}

export function Palette({ onClose, sections, me }: { onClose: () => void; sections: readonly Section[]; me: Me }) {
  const [, navigate] = useLocation()
  const [value, setValue] = useState('')
  /** The index of the offer to which the person moved, or null for the default. */
  const [chosen, setChosen] = useState<number | null>(null)
  /** Whether Enter was pressed before the results arrived. */
  const [opensFirst, setOpensFirst] = useState(false)
  const typed = pastedValue(value)
  const { groups: found, isSearching } = useFound(typed, me)
  const { first, last } = localGroups(typed, sections, me)
  const groups = [...first, ...found, ...last].filter(({ offers }) => offers.length > 0)
  const offers = groups.flatMap((group) => group.offers)
  // -1 stands for no offer. An offer that blocks is never the default.
  const active = Math.min(chosen ?? (offers[0]?.blocks === true ? -1 : 0), offers.length - 1)
  const go = (path: string | undefined) => {
    if (path === undefined) return
    onClose()
    navigate(path)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) {
      event.preventDefault()
      const from = active === -1 && step === -1 ? 0 : active
      setChosen((from + step + offers.length) % Math.max(1, offers.length))
    } else if (event.key === 'Enter') {
      // Otherwise Enter would also submit the form that the command opens and focuses.
      event.preventDefault()
      if (isSearching) setOpensFirst(true)
      else go(offers[active]?.path)
    }
  }
  const opens = opensFirst && !isSearching ? offers[active]?.path : undefined
  useEffect(() => {
    if (opens === undefined) return
    onClose()
    navigate(opens)
  }, [opens, onClose, navigate])
  return (
    <Window
      onClose={onClose}
      withCloseButton={false}
      size="lg"
      yOffset="12vh"
      padding="sm"
      attributes={{ content: { 'aria-label': 'Search or jump to…' } }}
    >
      <Stack gap="xs">
        <TextInput
          value={value}
          onChange={(event) => {
            setValue(event.currentTarget.value)
            setChosen(null)
            setOpensFirst(false)
          }}
          onKeyDown={onKeyDown}
          placeholder={PLACEHOLDER}
          role="combobox"
          aria-label={PLACEHOLDER}
          aria-expanded={offers.length > 0}
          aria-controls={LIST_ID}
          {...(active !== -1 && { 'aria-activedescendant': `${LIST_ID}-${active}` })}
          rightSection={isSearching ? <Loader size="xs" /> : null}
          size="md"
          spellCheck={false}
          data-autofocus
        />
        <Offers groups={groups} chosen={active} onOpen={go} />
        {offers.length === 0 && !isSearching && (
          <Text size="sm" c="dimmed" px="xs" role="status">
            No results.
          </Text>
        )}
        <Help />
      </Stack>
    </Window>
  )
}
