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
import { text } from '../../text.ts'

const t = text.webhooks
const ALL = '*'

function groupOf(type: string): string {
  return type.split('.')[0] ?? type
}

/** The event types by group. A group with several types begins with the pattern of all its types, such as `license.*`. */
const CHOICES = [...new Set(EVENT_TYPES.filter((type) => type.includes('.')).map(groupOf))].map((group) => {
  const types = EVENT_TYPES.filter((type) => groupOf(type) === group)
  const pattern = { value: `${group}.*`, label: `${group}.*: ${t.group(group.replaceAll('_', ' '))}` }
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
        label={t.types}
        value={isAll ? 'all' : 'some'}
        onChange={(one) => onChange(one === 'all' ? [ALL] : [])}
      >
        <Stack gap={6} mt={6}>
          <Radio value="all" label={t.everyEvent} />
          <Radio value="some" label={t.chosenEvents} />
        </Stack>
      </Radio.Group>
      {!isAll && (
        <MultiSelect
          label={t.chosen}
          description={t.chosenHint}
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
      title={t.secretTitle}
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      <Stack>
        <Text size="sm">{t.secretHint}</Text>
        <Copyable value={secret} />
        <Group justify="flex-end">
          <Button onClick={onClose}>{t.secretKept}</Button>
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
    done: before ? t.saved : t.created,
    create: webhookEndpoints.createWebhookEndpoint,
    onCreated: ({ secret, ...endpoint }) => onCreated?.(endpoint, secret ?? null),
  })
  const body = { url: url.trim(), types, description: description === '' ? null : description }
  return (
    <FormWindow
      title={before ? t.edit : t.new}
      action={before ? text.save : t.new}
      opened
      onClose={onClose}
      onSubmit={() => saving.mutateAsync(body)}
      size="lg"
    >
      {(errors) => (
        <>
          <TextInput
            label={t.url}
            description={t.urlHint}
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
            label={t.description}
            description={t.descriptionHint}
            value={description}
            onChange={(event) => setDescription(event.currentTarget.value)}
            error={errors['description']}
          />
        </>
      )}
    </FormWindow>
  )
}
