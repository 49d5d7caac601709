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

const t = text.account

const whole = { hasMore: false, isLoadingMore: false, loadMore: () => undefined }

function Passkeys() {
  const { data, error, isPending, refetch } = useRead(passkeys.listMyPasskeys, {})
  const [name, setName] = useState<string | null>(null)
  const register = useChange((chosen: string) => registerPasskey(chosen), { done: t.registered, quiet: true })
  const remove = useCall(passkeys.deletePasskey)
  const columns: readonly Column<Passkey>[] = [
    { title: t.passkeyName, cell: (one) => one.name },
    { title: t.lastUsed, cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: ({ id, name: its }) => (
        <ConfirmButton
          size="xs"
          label={t.remove}
          title={t.removeTitle}
          object={<bdi>{its}</bdi>}
          consequence={t.removeHint}
          onConfirm={() => remove.mutateAsync({ params: { id } })}
        />
      ),
    },
  ]
  return (
    <Stack gap="sm" component="section" aria-label={t.passkeys}>
      <Group justify="space-between">
        <Title order={2} size="h4">
          {t.passkeys}
        </Title>
        <Button onClick={() => setName('')} disabled={!offersPasskeys()}>
          {t.newPasskey}
        </Button>
      </Group>
      <Text size="sm" c="dimmed">
        {t.passkeysHint}
      </Text>
      {!offersPasskeys() && <Alert color="blue">{t.unsupported}</Alert>}
      <ListTable
        list={{ ...whole, items: data?.data ?? [], error, isPending, retry: () => void refetch() }}
        columns={columns}
        empty={t.noPasskeys}
        label={t.passkeys}
      />
      <FormWindow
        title={t.newPasskey}
        action={t.newPasskey}
        opened={name !== null}
        onClose={() => setName(null)}
        onSubmit={() => register.mutateAsync(name ?? '')}
      >
        {(errors) => (
          <TextInput
            label={t.passkeyName}
            description={t.passkeyNameHint}
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
  const end = useCall(sessions.endMySession, { done: t.ended })
  const columns: readonly Column<Session>[] = [
    { title: t.opened, cell: ({ createdAt }) => <When at={createdAt} /> },
    { title: t.lastUsed, cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
    { title: t.method, cell: ({ method }) => t.methods[method] ?? method },
    {
      title: text.actions,
      cell: ({ id, isCurrent }) =>
        isCurrent ? (
          <DotBadge color="teal">{t.current}</DotBadge>
        ) : (
          <Button size="xs" variant="default" onClick={() => end.mutate({ params: { id } })}>
            {t.end}
          </Button>
        ),
    },
  ]
  return (
    <Stack gap="sm" component="section" aria-label={t.sessions}>
      <Title order={2} size="h4">
        {t.sessions}
      </Title>
      <ListTable
        list={{ ...whole, items: data?.data ?? [], error, isPending, retry: () => void refetch() }}
        columns={columns}
        empty=""
        label={t.sessions}
      />
    </Stack>
  )
}

const TOKENS = {
  title: t.tokens,
  hint: t.tokensHint,
  new: t.newToken,
  none: t.noTokens,
  revokeTitle: t.revokeTokenTitle,
  revokeHint: t.revokeTokenHint,
}

function AccessTokens({ memberId, own }: { memberId: string; own: readonly string[] }) {
  const params = { id: memberId }
  const list = useList(members.listAccessTokens, { params })
  const create = useCall(members.createAccessToken, { quiet: true })
  const revoke = useCall(members.revokeAccessToken, { done: text.credentials.revoked })
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
    <Screen title={t.title}>
      <Text>{me.member?.email ?? me.kind.toLowerCase()}</Text>
      {me.member && <Passkeys />}
      {me.member && me.permissions.includes('credentials.write') && (
        <AccessTokens memberId={me.member.id} own={me.permissions} />
      )}
      <Sessions />
    </Screen>
  )
}
