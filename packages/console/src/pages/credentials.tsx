import { apiKeys, tokens } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import { signingKeys } from '@keyward/contract/management/signing-keys'
import { Button, Group } from '@mantine/core'

import { type ItemOf, useCall, useList } from '../api/hooks.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { CredentialList } from '../parts/credential-list.tsx'
import { Screen } from '../parts/page-header.tsx'
import { Copyable, DotBadge, Part, When } from '../parts/parts.tsx'
import { permissionsOf } from '../parts/permissions-field.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.credentials
type SigningKey = ItemOf<typeof signingKeys.listSigningKeys>

const API_KEYS = {
  title: t.apiKeys,
  hint: t.apiKeysHint,
  new: t.newApiKey,
  none: t.noKeys,
  revokeTitle: t.revokeKeyTitle,
  revokeHint: t.revokeKeyHint,
}
const TOKENS = {
  title: t.tokens,
  hint: t.tokensHint,
  new: t.newToken,
  none: t.noTokens,
  revokeTitle: t.revokeTokenTitle,
  revokeHint: t.revokeTokenHint,
}

function stateOf({ withdrawnAt, retiredAt, preparedAt }: SigningKey): { label: string; color: string } {
  if (withdrawnAt !== null) return { label: t.withdrawn, color: 'red' }
  if (preparedAt !== null) return { label: t.prepared, color: 'blue' }
  return retiredAt === null ? { label: t.current, color: 'teal' } : { label: t.retired, color: 'gray' }
}

function SigningKeys() {
  const list = useList(signingKeys.listSigningKeys, {})
  const prepare = useCall(signingKeys.prepareSigningKey, { done: t.preparedKey })
  const isPrepared = list.items.some((key) => key.preparedAt !== null && key.withdrawnAt === null)
  const rotate = useCall(signingKeys.rotateSigningKey, { done: t.rotated })
  const withdraw = useCall(signingKeys.withdrawSigningKey, { done: t.keyWithdrawn })
  const columns: readonly Column<SigningKey>[] = [
    { title: t.keyId, cell: ({ keyId }) => <span className="mono">{keyId}</span> },
    {
      title: t.state,
      cell: (key) => <DotBadge color={stateOf(key).color}>{stateOf(key).label}</DotBadge>,
    },
    { title: t.publicKey, cell: ({ publicKey }) => <Copyable value={publicKey} /> },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: (key) =>
        key.retiredAt !== null && key.withdrawnAt === null ? (
          <ConfirmButton
            size="xs"
            label={t.withdraw}
            title={t.withdrawTitle}
            object={<span className="mono">{key.keyId}</span>}
            consequence={t.withdrawHint}
            onConfirm={() => withdraw.mutateAsync({ params: { id: key.id } })}
          />
        ) : null,
    },
  ]
  return (
    <Part
      title={t.signingKeys}
      hint={t.signingKeysHint}
      action={
        <Group>
          {!isPrepared && (
            <Button variant="default" onClick={() => prepare.mutate({})} loading={prepare.isPending}>
              {t.prepare}
            </Button>
          )}
          <ConfirmButton
            label={t.rotate}
            title={t.rotateTitle}
            consequence={isPrepared ? t.rotatePrepared : t.rotateHint}
            isDangerous={!isPrepared}
            onConfirm={() => rotate.mutateAsync({})}
          />
        </Group>
      }
    >
      <ListTable list={list} columns={columns} empty="" label={t.signingKeys} />
    </Part>
  )
}

function ApiKeys({ own }: { own: readonly string[] }) {
  const list = useList(apiKeys.listApiKeys, {})
  const create = useCall(apiKeys.createApiKey, { quiet: true })
  const revoke = useCall(apiKeys.revokeApiKey, { done: t.revoked })
  return (
    <CredentialList
      isApiKey
      list={list}
      onCreate={({ name, productId }) => create.mutateAsync({ body: { name, productId } })}
      onRevoke={(id) => revoke.mutateAsync({ params: { id } })}
      own={own}
      texts={API_KEYS}
    />
  )
}

function Tokens({ own }: { own: readonly string[] }) {
  const list = useList(tokens.listTokens, {})
  const create = useCall(tokens.createToken, { quiet: true })
  const revoke = useCall(tokens.revokeToken, { done: t.revoked })
  return (
    <CredentialList
      list={list}
      onCreate={({ name, permissions }) =>
        create.mutateAsync({ body: { name, permissions: permissionsOf(permissions) } })
      }
      onRevoke={(id) => revoke.mutateAsync({ params: { id } })}
      own={own}
      texts={TOKENS}
    />
  )
}

export default function CredentialsPage({ me }: { me: Me }) {
  return (
    <Screen title={t.title}>
      <ApiKeys own={me.permissions} />
      <Tokens own={me.permissions} />
      {me.permissions.includes('signing-keys.write') && <SigningKeys />}
    </Screen>
  )
}
