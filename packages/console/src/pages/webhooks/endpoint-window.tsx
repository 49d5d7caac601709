/** The window that creates or changes a webhook endpoint, and the window that shows a secret once. */

import { EVENT_TYPES } from '@keyward/contract/management/events'
import { type WebhookEndpoint, webhookEndpoints } from '@keyward/contract/management/webhooks'
import type { ResultOf } from '@keyward/contract/operations'
import { MultiSelect, Radio, Stack, TextInput } from '@mantine/core'

import { useEdit } from '../../api/edit.ts'
import type { FieldErrors } from '../../api/input.ts'
import { orNull, useFields } from '../../parts/fields.ts'
import { FormWindow } from '../../parts/form.tsx'
import { SecretWindow } from '../../parts/secret-window.tsx'
const ALL = '*'

function groupOf(type: string): string {
  return type.split('.')[0] ?? type
}

/** The event types by group. A group with several types begins with the pattern of all its types, such as `license.*`. */
const CHOICES = [...new Set(EVENT_TYPES.filter((type) => type.includes('.')).map(groupOf))].map((group) => {
  const types = EVENT_TYPES.filter((type) => groupOf(type) === group)
  const pattern = { value: `${group}.*`, label: `${group}.*: every ${group.replaceAll('_', ' ')} event` }
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
export function EndpointSecret(props: { secret: string; onClose: () => void }) {
  return (
    <SecretWindow
      {...props}
      title="Copy the secret now"
      hint="The secret is not shown again. Your receiver verifies the signature of each request with this secret, so store it there."
      done="I have copied it"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    />
  )
}

/** Creates an endpoint, or changes one. */
export function EndpointWindow({
  before,
  onClose,
  onCreated,
}: {
  before: WebhookEndpoint | null
  onClose: () => void
  onCreated?: (endpoint: ResultOf<typeof webhookEndpoints.createWebhookEndpoint>) => void
}) {
  const {
    values,
    change,
    text: field,
  } = useFields({
    url: before?.url ?? '',
    types: before?.types ?? [ALL],
    description: before?.description ?? '',
  })
  const saving = useEdit(webhookEndpoints.updateWebhookEndpoint, before, {
    done: before ? 'Saved the endpoint.' : 'Created the endpoint.',
    create: webhookEndpoints.createWebhookEndpoint,
    ...(onCreated && { onCreated }),
  })
  const { url, types, description } = values
  return (
    <FormWindow
      title={before ? 'Change' : 'New endpoint'}
      action={before ? 'Save' : 'New endpoint'}
      onClose={onClose}
      onSubmit={() => saving.mutateAsync({ url: url.trim(), types, description: orNull(description) })}
      size="lg"
    >
      {(errors) => (
        <>
          <TextInput
            label="URL"
            description="It receives a POST request for each event. It must use https and a public address."
            placeholder="https://hooks.example.com/keyward"
            {...field('url', errors)}
            classNames={{ input: 'mono' }}
            inputMode="url"
            spellCheck={false}
            required
            data-autofocus
          />
          <TypesField value={types} onChange={(next) => change({ types: next })} errors={errors} />
          <TextInput
            label="Description"
            description="The purpose of the endpoint, such as the name of the program."
            {...field('description', errors)}
          />
        </>
      )}
    </FormWindow>
  )
}
