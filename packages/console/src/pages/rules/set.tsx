import { accessRuleSets } from '@keyward/contract'
import { Button } from '@mantine/core'
import { Link, useLocation } from 'wouter'

import { callAndApply } from '../../api/client.ts'
import { useChange, useRead } from '../../api/hooks.ts'
import { liveMessage } from '../../api/live.ts'
import { useMay } from '../../api/me.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { Screen } from '../../parts/page-header.tsx'
import { Facts, Waiting, When } from '../../parts/parts.tsx'
import { ErrorMessage } from '../../parts/states.tsx'
import { useUrlParameters, useUrlSorting } from '../../parts/url.ts'
import { counted } from '../../text.ts'
import { replacePath } from './paths.ts'
import { RulesTable } from './rules-table.tsx'
import { ModeButton } from './set-mode.tsx'
import { putSet, readStored } from './stored-set.ts'

export default function RuleSet() {
  const may = useMay()
  const name = useUrlParameters().get('name') ?? ''
  const input = { params: { set: name } }
  const read = useRead(accessRuleSets.readAccessRuleSet, input)
  const [, navigate] = useLocation()
  const [order, sorting] = useUrlSorting()
  const remove = useChange(
    async () => {
      const before = await readStored(name)
      return { before, ...(await callAndApply(accessRuleSets.deleteAccessRuleSet, input)) }
    },
    {
      done: ({ applied }) => liveMessage('Deleted the set.', applied),
      undo: ({ before }) => putSet(name, before.rows, null),
      onDone: () => navigate('/rules/sets'),
    },
  )
  if (read.error) return <ErrorMessage error={read.error} />
  if (!read.data) return <Waiting />
  const { rules, createdAt, updatedAt } = read.data
  const canWrite = may('licenses.write')
  return (
    <Screen
      title={name}
      actions={
        canWrite && (
          <>
            <Button component={Link} href={replacePath(name)}>
              Replace
            </Button>
            <ModeButton mode="ENFORCE" selection={{ set: name }} />
            <ConfirmButton
              label="Delete the set"
              title={`Delete the set ${name}?`}
              consequence={`Deletes the set and its ${counted(rules, 'rule')}. They stop matching within a moment.`}
              onConfirm={() => remove.mutateAsync(undefined)}
            />
          </>
        )
      }
    >
      <Facts
        facts={{
          Rules: rules.toLocaleString(),
          Updated: <When at={updatedAt} />,
          Created: <When at={createdAt} />,
        }}
      />
      <RulesTable
        filters={{ set: name, ...order }}
        label="Rules"
        empty="This set contains no rules."
        sorting={sorting}
      />
    </Screen>
  )
}
