/** Lists the members of the organization, invites and removes members, and changes their permissions and the time zone. */

import { ALL_PERMISSIONS, type Member, organizations } from '@keyward/contract'
import { members } from '@keyward/contract/management/members'
import type { Me } from '@keyward/contract/management/sign-in'
import { Button, Group, Select, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'

import { call } from '../api/client.ts'
import { useEdit } from '../api/edit.ts'
import { useCall, useList } from '../api/hooks.ts'
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

/** Returns the name of the role whose permissions these are. */
function roleOf(permissions: readonly string[]): string {
  if (ALL_PERMISSIONS.every((one) => permissions.includes(one))) return t.roles.owner
  if (permissions.every((one) => one.endsWith('.read'))) return t.roles.reader
  return permissions.includes('credentials.write') ? t.roles.manager : t.roles.custom
}

/** The window that invites a member, or changes one. */
function MemberWindow({
  before,
  own,
  onClose,
  onInvited,
}: {
  before: Member | null
  own: readonly string[]
  onClose: () => void
  onInvited: (path: string | null) => void
}) {
  const [email, setEmail] = useState(before?.email ?? '')
  const [granted, setGranted] = useState<readonly string[]>(before?.permissions ?? READ_ONLY)
  const saving = useEdit(members.updateMember, before, {
    done: t.saved,
    create: members.createMember,
    onCreated: ({ invitation }) => onInvited(invitation?.path ?? null),
  })
  return (
    <FormWindow
      title={before ? t.edit : t.invite}
      action={before ? text.save : t.invite}
      opened
      onClose={onClose}
      onSubmit={() => saving.mutateAsync({ email, permissions: permissionsOf(granted) })}
    >
      {(errors) => (
        <>
          <TextInput
            label={t.email}
            type="email"
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
            error={errors['email']}
            required
            data-autofocus
          />
          <PermissionsField value={granted} onChange={setGranted} own={own} />
        </>
      )}
    </FormWindow>
  )
}

/** The time zone in which the days of the organization end. */
function ZoneField({ value }: { value: string | null }) {
  const change = useCall(organizations.updateOwnOrganization, {
    done: t.zoneSaved,
    undo: () => call(organizations.updateOwnOrganization, { body: { timeZone: value } }),
  })
  return (
    <Select
      label={t.zone}
      description={t.zoneHint}
      // The list of the browser lacks aliases and UTC.
      data={[...new Set([...(value === null ? [] : [value]), 'UTC', ...Intl.supportedValuesOf('timeZone')])]}
      value={value}
      onChange={(timeZone) => change.mutate({ body: { timeZone } })}
      allowDeselect={false}
      searchable
      maw={360}
    />
  )
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
  const [edited, setEdited] = useState<Member | 'new' | null>(useUrlParameters().has('new') ? 'new' : null)
  const [path, setPath] = useState<string | null>(null)
  const invite = useCall(members.createInvitation, {
    onDone: (created) => setPath(created.path ?? null),
  })
  const remove = useCall(members.deleteMember, { done: t.removed })
  const open = () => setEdited('new')
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
          <Button size="xs" variant="default" onClick={() => setEdited(one)}>
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
      {me.organization && <ZoneField value={me.organization.timeZone} />}
      {edited !== null && (
        <MemberWindow
          before={edited === 'new' ? null : edited}
          own={me.permissions}
          onClose={() => setEdited(null)}
          onInvited={setPath}
        />
      )}
      {path !== null && <LinkWindow path={path} onClose={() => setPath(null)} />}
    </Screen>
  )
}
