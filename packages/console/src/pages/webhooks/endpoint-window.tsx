/** The window that creates or changes a webhook endpoint, and the window that shows a secret once. */

import { EVENT_TYPES } from '@keyward/contract/management/events'
import { type WebhookEndpoint, webhookEndpoints } from '@keyward/contract/management/webhooks'
import { Button, Group, MultiSelect, Radio, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'

import { useEdit } from '../../api/edit.ts'
import type { FieldErrors } from '../../api/input.ts'
import { FormWindow } from '../../parts/form.tsx'
import { Copyable } from '../../parts/parts.tsx'
import { Window } from '../../parts/window.tsx'
const ALL = '*'

function groupOf(type: string): string {
  return type.split('.')[0] ?? type
}

/** The event types by group. A group with several types begins with the pattern of all its types, such as `license.*`. */
const CHOICES = [...new Set(EVENT_TYPES.filter((type) => type.includes('.')).map(groupOf))].map((group) => {
  const types = EVENT_TYPES.filter((type) => groupOf(type) === group)
  const pattern = { value: `${group}.*`, label: `${group}.*: ${`every ${group.replaceAll('_', ' ')} event`}` }
  const single = types.map((type) => ({ value: type, label: type }))
  return { group: group.replaceAll('_', ' '), items: types.length > 1 ? [pattern, ...single] : single }
})

/** A field for the event types that the endpoint receives: all types, or selected ones. */
function TypesField({
  value,
  onChange,
  errors,
}: {
  value: readonly string[]
  onChange: (types: string[]) => void
  errors: FieldErrors
}) {
  const isAll = value.includes(ALL)
  const error = Object.entries(errors).find(([pointer]) => pointer.startsWith('types'))?.[1]
  return (
    <Stack gap="xs">
      <Radio.Group
        label="Events to send"
        value={isAll ? 'all' : 'some'}
        onChange={(one) => onChange(one === 'all' ? [ALL] : [])}
      >
        <Stack gap={6} mt={6}>
          <Radio value="all" label="Every event" />
          <Radio value="some" label="Only some events" />
        </Stack>
      </Radio.Group>
      {!isAll && (
        <MultiSelect
          label="Which events"
          description="A whole group such as license.*, or single types."
          data={CHOICES}
          value={[...value]}
          onChange={onChange}
          error={error}
          searchable
          hidePickedOptions
          maxDropdownHeight={260}
          required
        />
      )}
    </Stack>
  )
}

/** Shows a secret until the person confirms that it is stored elsewhere. */
export function SecretWindow({ secret, onClose }: { secret: string | null; onClose: () => void }) {
  if (secret === null) return null
  return (
    <Window
      onClose={onClose}
      title="Copy the secret now"
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      <Stack>
        <Text size="sm">
          The secret is not shown again. Your receiver verifies the signature of each request with this secret, so store
          it there.
        </Text>
        <Copyable value={secret} />
        <Group justify="flex-end">
          <Button onClick={onClose}>I have copied it</Button>
        </Group>
      </Stack>
    </Window>
  )
}

export function EndpointWindow({
  before,
  onClose,
  onCreated,
}: {
  /** The endpoint to change, or undefined to create one. */
  before?: WebhookEndpoint
  onClose: () => void
  onCreated?: (endpoint: WebhookEndpoint, secret: string | null) => void
}) {
  const [url, setUrl] = useState(before?.url ?? '')
  const [types, setTypes] = useState(before?.types ?? [ALL])
  const [description, setDescription] = useState(before?.description ?? '')
  const saving = useEdit(webhookEndpoints.updateWebhookEndpoint, before ?? null, {
    done: before ? 'Saved the endpoint.' : 'Created the endpoint.',
    create: webhookEndpoints.createWebhookEndpoint,
    onCreated: ({ secret, ...endpoint }) => onCreated?.(endpoint, secret ?? null),
  })
  const body = { url: url.trim(), types, description: description === '' ? null : description }
  return (
    <FormWindow
      title={before ? 'Change' : 'New endpoint'}
      action={before ? 'Save' : 'New endpoint'}
      opened
      onClose={onClose}
      onSubmit={() => saving.mutateAsync(body)}
      size="lg"
    >
      {(errors) => (
        <>
          <TextInput
            label="URL"
            description="It receives a POST request for each event. It must use https and a public address."
            placeholder="https://hooks.example.com/keyward"
            value={url}
            onChange={(event) => setUrl(event.currentTarget.value)}
            error={errors['url']}
            classNames={{ input: 'mono' }}
            inputMode="url"
            spellCheck={false}
            required
            data-autofocus
          />
          <TypesField value={types} onChange={setTypes} errors={errors} />
          <TextInput
            label="Description"
            description="The purpose of the endpoint, such as the name of the program."
            value={description}
            onChange={(event) => setDescription(event.currentTarget.value)}
            error={errors['description']}
          />
        </>
      )}
    </FormWindow>
  )
}
