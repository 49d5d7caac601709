import type { Me } from '@keyward/contract/management/sign-in'
import { signingKey } from '@keyward/contract/management/signing-keys'
import type { z } from 'zod'

import { call } from '../api/client.ts'
import { useChange, useList } from '../api/hooks.ts'
import { CredentialList } from '../parts/credential-list.tsx'
import { ConfirmButton, Copyable, DotBadge, Part, Screen, When } from '../parts/parts.tsx'
import { type Column, ListTable } from '../parts/table.tsx'
import { text } from '../text.ts'

const t = text.credentials
type SigningKey = z.infer<typeof signingKey>

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
  const list = useList('/signing-keys', signingKey)
  const rotate = useChange(() => call({ method: 'POST', path: '/signing-keys/rotate', waits: true }, signingKey), {
    done: t.rotated,
  })
  const withdraw = useChange((id: string) =>
    call({ method: 'POST', path: `/signing-keys/${id}/withdraw`, waits: true }, signingKey),
  )
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
            consequence={t.withdrawHint}
            onConfirm={() => withdraw.mutateAsync(key.id)}
          />
        ) : null,
    },
  ]
  return (
    <Part
      title={t.signingKeys}
      hint={t.signingKeysHint}
      action={
        <ConfirmButton
          label={t.rotate}
          title={t.rotateTitle}
          consequence={t.rotateHint}
          color="orange"
          onConfirm={() => rotate.mutateAsync(undefined)}
        />
      }
    >
      <ListTable list={list} columns={columns} empty="" label={t.signingKeys} />
    </Part>
  )
}

export default function CredentialsPage({ me }: { me: Me }) {
  return (
    <Screen title={t.title}>
      <CredentialList path="/api-keys" isApiKey own={me.permissions} texts={API_KEYS} />
      <CredentialList path="/tokens" own={me.permissions} texts={TOKENS} />
      {me.permissions.includes('signing-keys.write') && <SigningKeys />}
    </Screen>
  )
}
