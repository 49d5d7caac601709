import { ALL_PERMISSIONS } from '@keyward/contract'
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

/** Returns the name of the role whose permissions these are. */
function roleOf(permissions: readonly string[]): string {
  if (ALL_PERMISSIONS.every((one) => permissions.includes(one))) return t.roles.owner
  if (permissions.every((one) => one.endsWith('.read'))) return t.roles.reader
  return permissions.includes('credentials.write') ? t.roles.manager : t.roles.custom
}

const NEW: Edited = { before: null, email: '', permissions: READ_ONLY }

function update({ id }: Member, { email, permissions }: Pick<Edited, 'email' | 'permissions'>): Promise<Member> {
  return call(members.updateMember, { params: { id }, body: { email, permissions: permissionsOf(permissions) } })
}

/** Shows the link of an invitation. */
function LinkWindow({ path, onClose }: { path: string; onClose: () => void }) {
  return (
    <Window onClose={onClose} title={t.invite} size="lg">
      <Stack>
        <Text size="sm">{t.invited}</Text>
        <Copyable value={`${window.location.origin}${path}`} />
        <Group justify="flex-end">
          <Button onClick={onClose}>{t.done}</Button>
        </Group>
      </Stack>
    </Window>
  )
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
    {
      title: t.email,
      cell: ({ id, email }) => (
        <>
          <bdi className="name">{email}</bdi>
          {id === me.member?.id && <span className="faint"> {t.you}</span>}
        </>
      ),
    },
    {
      title: t.role,
      cell: ({ permissions }) => (
        <>
          {roleOf(permissions)}
          <span className="sub wrap">{permissionsText(permissions)}</span>
        </>
      ),
    },
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
          {one.id === me.member?.id ? null : (
            <ConfirmButton
              size="xs"
              label={t.remove}
              title={t.removeTitle}
              object={<bdi>{one.email}</bdi>}
              consequence={t.removeHint}
              onConfirm={() => remove.mutateAsync({ params: { id: one.id } })}
            />
          )}
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
        hasTwoLines
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
      {path !== null && <LinkWindow path={path} onClose={() => setPath(null)} />}
    </Screen>
  )
}
