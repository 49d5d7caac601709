/**
 * Views of the list of licenses that a member has named. The browser stores them for each member. A filter for one customer or one
 * key is not stored, because other people may use the browser.
 */

import { Button, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import { z } from 'zod'

import { InputError } from '../../api/input.ts'
import { useSignedIn } from '../../api/me.ts'
import { showError } from '../../notices.tsx'
import { FormWindow } from '../../parts/form.tsx'
import type { Filters } from '../../parts/url.ts'
import { isCurrent, type View } from '../../parts/views.tsx'

const FILTERS = z.enum(['status', 'productId', 'templateId', 'within'])
const MAX_VIEWS = 10
const MAX_NAME = 30

const stored = z
  .array(z.object({ label: z.string().min(1).max(MAX_NAME), query: z.partialRecord(FILTERS, z.string()) }))
  .max(MAX_VIEWS)
type Stored = z.infer<typeof stored>

function readViews(key: string): Stored {
  try {
    return stored.parse(JSON.parse(localStorage.getItem(key) ?? '[]'))
  } catch {
    return []
  }
}

/** Returns the member's stored views, and a function that changes them. */
export function useSavedViews(): [Stored, (edit: (views: Stored) => Stored) => void] {
  const me = useSignedIn()
  const key = `keyward views ${me.organization?.id ?? ''} ${me.member?.id ?? ''}`
  const [views, setViews] = useState(() => readViews(key))
  // Another tab may have changed the views since.
  const change = (edit: (views: Stored) => Stored) => {
    const next = edit(readViews(key))
    try {
      localStorage.setItem(key, JSON.stringify(next))
    } catch (error) {
      showError(error instanceof Error ? error : new Error(String(error)))
    }
    setViews(next)
  }
  return [views, change]
}

/** The button that names the filters of the list, or deletes the saved view that the list shows. */
export function SaveView({
  fixed,
  saved: [views, change],
  filters,
}: {
  /** The views that every member has. */
  fixed: readonly View<Readonly<Record<string, string | undefined>>>[]
  saved: ReturnType<typeof useSavedViews>
  filters: Filters<string>
}) {
  const [isNaming, naming] = useDisclosure(false)
  const [name, setName] = useState('')
  const current = views.find(({ query }) => isCurrent(query, filters))
  const given = Object.entries(filters).filter(([, value]) => value !== null)
  const query = z.partialRecord(FILTERS, z.string()).safeParse(Object.fromEntries(given)).data
  if (query === undefined || fixed.some((one) => isCurrent(one.query, filters))) return null
  const save = async () => {
    const label = name.trim()
    if (label === '' || label.length > MAX_NAME) throw new InputError({ name: `must have 1 to ${MAX_NAME} characters` })
    if ([...fixed, ...views].some((one) => one.label.toLowerCase() === label.toLowerCase()))
      throw new InputError({ name: 'is the name of another view' })
    if (views.length >= MAX_VIEWS)
      throw new InputError({ name: `cannot be saved: delete one of the ${MAX_VIEWS} views first` })
    change((known) => [...known, { label, query }].slice(0, MAX_VIEWS))
    setName('')
  }
  return (
    <>
      <Button
        variant="subtle"
        color="gray"
        onClick={current ? () => change((known) => known.filter(({ label }) => label !== current.label)) : naming.open}
      >
        {current ? 'Delete the view' : 'Save as a view'}
      </Button>
      {isNaming && (
        <FormWindow title="Save these filters as a view" action="Save" onClose={naming.close} onSubmit={save}>
          {(errors) => (
            <TextInput
              label="Name"
              description="This browser keeps the view for you."
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={errors['name']}
              required
              data-autofocus
            />
          )}
        </FormWindow>
      )}
    </>
  )
}
