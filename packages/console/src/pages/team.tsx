/** Lists the members of the organization, invites and removes members, and changes their permissions. */

import { ALL_PERMISSIONS, member, type Member } from '@keyward/contract'
import { createdMember, invitation, type Me } from '@keyward/contract/management/sign-in'
import { Button, Checkbox, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'

import { call, callWithoutResponse } from '../api/client.ts'
import { useChange, useList } from '../api/hooks.ts'
import { FormWindow } from '../parts/form.tsx'
import { ConfirmButton, Copyable, Screen, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlParameters } from '../parts/url.ts'
import { text } from '../text.ts'

const t = text.team

function summary(permissions: readonly string[]): string {
  if (permissions.length === ALL_PERMISSIONS.length) return t.all
  return permissions.map((name) => t.names[name] ?? name).join(', ')
}

interface Edited {
  /** The id of the member, or null for a new one. */
  id: string | null
  email: string
  permissions: string[]
}

const READ_ONLY = ALL_PERMISSIONS.filter((name) => name.endsWith('.read'))

function PermissionsField({
  value,
  onChange,
  own,
}: {
  value: string[]
  onChange: (value: string[]) => void
  own: readonly string[]
}) {
  const granted = (names: readonly string[]) => names.filter((name) => own.includes(name))
  return (
    <Checkbox.Group label={t.may} value={value} onChange={onChange}>
      <Group gap="xs" my="xs">
        <Button size="compact-xs" variant="default" onClick={() => onChange(granted(READ_ONLY))}>
          {t.readOnly}
        </Button>
        <Button size="compact-xs" variant="default" onClick={() => onChange(granted(ALL_PERMISSIONS))}>
          {t.everything}
        </Button>
      </Group>
      <Stack gap={6}>
        {ALL_PERMISSIONS.map((name) => (
          <Checkbox key={name} value={name} label={t.names[name] ?? name} disabled={!own.includes(name)} />
        ))}
      </Stack>
    </Checkbox.Group>
  )
}

export default function Team({ me }: { me: Me }) {
  const list = useList('/members', member)
  const [edited, setEdited] = useState<Edited | null>(
    useUrlParameters().has('new') ? { id: null, email: '', permissions: [...READ_ONLY] } : null,
  )
  const [path, setPath] = useState<string | null>(null)
  const saving = useChange(
    async ({ id, email, permissions }: Edited) => {
      const body = { email, permissions }
      if (id !== null) return call({ method: 'PATCH', path: `/members/${id}`, body }, member)
      const created = await call({ method: 'POST', path: '/members', body }, createdMember)
      setPath(created.invitation?.path ?? null)
      return created
    },
    { done: t.saved, quiet: true },
  )
  const invite = useChange((id: string) => call({ method: 'POST', path: `/members/${id}/invitation` }, invitation), {
    onDone: (created) => setPath(created.path ?? null),
  })
  const remove = useChange((id: string) => callWithoutResponse({ method: 'DELETE', path: `/members/${id}` }), {
    done: t.removed,
  })
  const open = () => setEdited({ id: null, email: '', permissions: [...READ_ONLY] })
  const columns: readonly Column<Member>[] = [
    { title: t.email, cell: ({ email }) => email },
    { title: t.permissions, cell: ({ permissions }) => <Text size="sm">{summary(permissions)}</Text> },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: ({ id, email, permissions }) => (
        <Group gap="xs" wrap="nowrap">
          <Button size="xs" variant="default" onClick={() => setEdited({ id, email, permissions })}>
            {t.edit}
          </Button>
          <Button size="xs" variant="default" onClick={() => invite.mutate(id)}>
            {t.inviteAgain}
          </Button>
          <ConfirmButton
            size="xs"
            label={t.remove}
            title={t.removeTitle}
            consequence={t.removeHint}
            onConfirm={() => remove.mutateAsync(id)}
          />
        </Group>
      ),
    },
  ]
  return (
    <Screen title={t.title} actions={<Button onClick={open}>{t.invite}</Button>}>
      <ListTable
        list={list}
        columns={columns}
        label={t.title}
        empty={
          <>
            {t.empty}
            <Button onClick={open}>{t.invite}</Button>
          </>
        }
      />
      <FormWindow
        title={edited?.id === null ? t.invite : t.edit}
        action={edited?.id === null ? t.invite : text.save}
        opened={edited !== null}
        onClose={() => setEdited(null)}
        onSubmit={() => (edited ? saving.mutateAsync(edited) : Promise.resolve())}
      >
        {(errors) => (
          <>
            <TextInput
              label={t.email}
              type="email"
              value={edited?.email ?? ''}
              onChange={(event) => setEdited(edited && { ...edited, email: event.currentTarget.value })}
              error={errors['email']}
              required
              data-autofocus
            />
            <PermissionsField
              value={edited?.permissions ?? []}
              onChange={(permissions) => setEdited(edited && { ...edited, permissions })}
              own={me.permissions}
            />
          </>
        )}
      </FormWindow>
      <Modal
        opened={path !== null}
        onClose={() => setPath(null)}
        title={t.invite}
        size="lg"
        closeButtonProps={{ 'aria-label': text.close }}
      >
        <Stack>
          <Text size="sm">{t.invited}</Text>
          <Copyable value={`${window.location.origin}${path ?? ''}`} />
          <Group justify="flex-end">
            <Button onClick={() => setPath(null)}>{t.done}</Button>
          </Group>
        </Stack>
      </Modal>
    </Screen>
  )
}
