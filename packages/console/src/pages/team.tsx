/** Lists the members of the organization, invites and removes members, and changes their permissions. */

import type { Member } from '@keyward/contract'
import { members } from '@keyward/contract/management/members'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'

import { call } from '../api/client.ts'
import { useCall, useChange, useList } from '../api/hooks.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { FormWindow } from '../parts/form.tsx'
import { Screen } from '../parts/page-header.tsx'
import { Copyable, When } from '../parts/parts.tsx'
import { permissionsOf, permissionsText, PermissionsField, READ_ONLY } from '../parts/permissions-field.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { useUrlParameters } from '../parts/url.ts'
import { Window } from '../parts/window.tsx'
import { text } from '../text.ts'

const t = text.team

interface Edited {
  /** The member to change, or null for a new one. */
  before: Member | null
  email: string
  permissions: readonly string[]
}

const NEW: Edited = { before: null, email: '', permissions: READ_ONLY }

function update({ id }: Member, { email, permissions }: Pick<Edited, 'email' | 'permissions'>): Promise<Member> {
  return call(members.updateMember, { params: { id }, body: { email, permissions: permissionsOf(permissions) } })
}

export default function Team({ me }: { me: Me }) {
  const list = useList(members.listMembers, {})
  const [edited, setEdited] = useState<Edited | null>(useUrlParameters().has('new') ? NEW : null)
  const [path, setPath] = useState<string | null>(null)
  const saving = useChange(
    async ({ before, email, permissions }: Edited) => {
      if (before) return update(before, { email, permissions })
      const body = { email, permissions: permissionsOf(permissions) }
      const created = await call(members.createMember, { body })
      setPath(created.invitation?.path ?? null)
      return created
    },
    {
      done: t.saved,
      undo: async (_, { before }) => before && update(before, { email: before.email, permissions: before.permissions }),
      canUndo: ({ before }) => before !== null,
      quiet: true,
    },
  )
  const invite = useCall(members.createInvitation, {
    onDone: (created) => setPath(created.path ?? null),
  })
  const remove = useCall(members.deleteMember, { done: t.removed })
  const open = () => setEdited(NEW)
  const columns: readonly Column<Member>[] = [
    { title: t.email, cell: ({ email }) => email },
    { title: t.permissions, cell: ({ permissions }) => <Text size="sm">{permissionsText(permissions)}</Text> },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: (one) => (
        <Group gap="xs" wrap="nowrap">
          <Button size="xs" variant="default" onClick={() => setEdited({ ...one, before: one })}>
            {t.edit}
          </Button>
          <Button size="xs" variant="default" onClick={() => invite.mutate({ params: { id: one.id } })}>
            {t.inviteAgain}
          </Button>
          <ConfirmButton
            size="xs"
            label={t.remove}
            title={t.removeTitle}
            consequence={t.removeHint}
            onConfirm={() => remove.mutateAsync({ params: { id: one.id } })}
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
        title={edited?.before ? t.edit : t.invite}
        action={edited?.before ? text.save : t.invite}
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
      {path !== null && (
        <Window onClose={() => setPath(null)} title={t.invite} size="lg">
          <Stack>
            <Text size="sm">{t.invited}</Text>
            <Copyable value={`${window.location.origin}${path}`} />
            <Group justify="flex-end">
              <Button onClick={() => setPath(null)}>{t.done}</Button>
            </Group>
          </Stack>
        </Window>
      )}
    </Screen>
  )
}
