import { members } from '@keyward/contract/management/members'
import { type Me, type Passkey, passkeys, type Session, sessions } from '@keyward/contract/management/sign-in'
import { Alert, Button, Group, Stack, Text, TextInput, Title } from '@mantine/core'
import { useState } from 'react'

import { useCall, useChange, useList, useRead } from '../api/hooks.ts'
import { offersPasskeys, registerPasskey } from '../api/passkeys.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { CredentialList } from '../parts/credential-list.tsx'
import { FormWindow } from '../parts/form.tsx'
import { Screen } from '../parts/page-header.tsx'
import { DotBadge, When } from '../parts/parts.tsx'
import { permissionsOf } from '../parts/permissions-field.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const whole = { hasMore: false, isLoadingMore: false, loadMore: () => undefined }

function Passkeys() {
  const { data, error, isPending, refetch } = useRead(passkeys.listMyPasskeys, {})
  const [name, setName] = useState<string | null>(null)
  const register = useChange((chosen: string) => registerPasskey(chosen), {
    done: 'Registered the passkey.',
    quiet: true,
  })
  const remove = useCall(passkeys.deletePasskey)
  const columns: readonly Column<Passkey>[] = [
    { title: 'Name', cell: (one) => one.name },
    { title: 'Last used', cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
    { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: ({ id, name: its }) => (
        <ConfirmButton
          size="xs"
          label="Delete"
          title="Delete this passkey?"
          object={<bdi>{its}</bdi>}
          consequence="You can no longer sign in with this passkey."
          onConfirm={() => remove.mutateAsync({ params: { id } })}
        />
      ),
    },
  ]
  return (
    <Stack gap="sm" component="section" aria-label="Passkeys">
      <Group justify="space-between">
        <Title order={2} size="h4">
          Passkeys
        </Title>
        <Button onClick={() => setName('')} disabled={!offersPasskeys()}>
          Register a passkey
        </Button>
      </Group>
      <Text size="sm" c="dimmed">
        A passkey signs you in with your fingerprint, your face or the PIN of your device.
      </Text>
      {!offersPasskeys() && (
        <Alert color="blue">
          This browser offers no passkeys for this address. Passkeys need a host name and TLS, or localhost.
        </Alert>
      )}
      <ListTable
        list={{ ...whole, items: data?.data ?? [], error, isPending, retry: () => void refetch() }}
        columns={columns}
        empty="No passkeys yet. Without a passkey, you need a new invitation for the next sign-in."
        label="Passkeys"
      />
      <FormWindow
        title="Register a passkey"
        action="Register a passkey"
        opened={name !== null}
        onClose={() => setName(null)}
        onSubmit={() => register.mutateAsync(name ?? '')}
      >
        {(errors) => (
          <TextInput
            label="Name"
            description="For example: work laptop."
            value={name ?? ''}
            onChange={(event) => setName(event.currentTarget.value)}
            error={errors['name']}
            required
            data-autofocus
          />
        )}
      </FormWindow>
    </Stack>
  )
}

function Sessions() {
  const { data, error, isPending, refetch } = useRead(sessions.listMySessions, {})
  const end = useCall(sessions.endMySession, { done: 'Ended the session.' })
  const columns: readonly Column<Session>[] = [
    { title: 'Opened', cell: ({ createdAt }) => <When at={createdAt} /> },
    { title: 'Last used', cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
    { title: 'With', cell: ({ method }) => text.methods[method] ?? method },
    {
      title: text.actions,
      cell: ({ id, isCurrent }) =>
        isCurrent ? (
          <DotBadge color="teal">this one</DotBadge>
        ) : (
          <Button size="xs" variant="default" onClick={() => end.mutate({ params: { id } })}>
            End
          </Button>
        ),
    },
  ]
  return (
    <Stack gap="sm" component="section" aria-label="Sessions">
      <Title order={2} size="h4">
        Sessions
      </Title>
      <ListTable
        list={{ ...whole, items: data?.data ?? [], error, isPending, retry: () => void refetch() }}
        columns={columns}
        empty=""
        label="Sessions"
      />
    </Stack>
  )
}

const TOKENS = {
  title: 'Personal access tokens',
  hint: 'For your own scripts, and for signing in without a passkey. A token permits what both it and you may do, and ends when you leave.',
  new: 'New personal access token',
  none: 'No personal access tokens.',
  revokeTitle: 'Revoke this token?',
  revokeHint: 'Scripts that use this token lose access at once.',
}

function AccessTokens({ memberId, own }: { memberId: string; own: readonly string[] }) {
  const params = { id: memberId }
  const list = useList(members.listAccessTokens, { params })
  const create = useCall(members.createAccessToken, { quiet: true })
  const revoke = useCall(members.revokeAccessToken, { done: 'Revoked the credential.' })
  return (
    <CredentialList
      list={list}
      onCreate={({ name, permissions }) =>
        create.mutateAsync({ params, body: { name, permissions: permissionsOf(permissions) } })
      }
      onRevoke={(tokenId) => revoke.mutateAsync({ params: { id: memberId, tokenId } })}
      own={own}
      texts={TOKENS}
    />
  )
}

export default function Account({ me }: { me: Me }) {
  return (
    <Screen title="Your account">
      <Text>{me.member?.email ?? me.kind.toLowerCase()}</Text>
      {me.member && <Passkeys />}
      {me.member && me.permissions.includes('credentials.write') && (
        <AccessTokens memberId={me.member.id} own={me.permissions} />
      )}
      <Sessions />
    </Screen>
  )
}
