/** Buttons that change the mode of many rules in one step. Before an enforcement, its effect on the checks of the last day is shown. */

import { accessRules, type RuleMode } from '@keyward/contract'
import type { InputOf } from '@keyward/contract/operations'
import { useQuery } from '@tanstack/react-query'

import { call } from '../../api/client.ts'
import { useCall } from '../../api/hooks.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { When } from '../../parts/parts.tsx'
import { counted, text } from '../../text.ts'

const t = {
  setMode: { ENFORCE: 'Enforce together', MONITOR: 'Only monitor' } satisfies Record<RuleMode, string>,
  setModeTitle: {
    ENFORCE: 'Let these rules decide checks?',
    MONITOR: 'Let these rules only count their matches?',
  } satisfies Record<RuleMode, string>,
  modeChanged: (count: number, mode: RuleMode) => `${text.modes[mode]}: ${counted(count, 'rule')} changed.`,
  wouldReject: (rejected: number, checks: number) =>
    `All of them change in one step. They would have rejected about ${rejected.toLocaleString()} of ${checks.toLocaleString()} checks since`,
}
type Selection = Pick<InputOf<typeof accessRules.setAccessRuleMode>['body'], 'ids' | 'set'>

function LastDay({ selection }: { selection: Selection }) {
  const { data } = useQuery({
    queryKey: ['last day', selection],
    queryFn: () => call(accessRules.setAccessRuleMode, { body: { mode: 'ENFORCE', ...selection, dryRun: true } }),
    staleTime: 0,
  })
  if (!data?.lastDay) return text.modeHints.ENFORCE
  const { from, checks, rejected } = data.lastDay
  return (
    <>
      {t.wouldReject(rejected, checks)} <When at={from} />
    </>
  )
}

/** `size` is that of the button. `changed` are the ids of the rules that have the other mode, for an undo. */
export function ModeButton({
  mode,
  selection,
  changed,
  onDone,
  size,
}: {
  mode: RuleMode
  selection: Selection
  changed?: readonly string[]
  onDone?: () => void
  size?: string
}) {
  const other = mode === 'ENFORCE' ? 'MONITOR' : 'ENFORCE'
  const set = useCall(accessRules.setAccessRuleMode, {
    done: ({ updated }) => t.modeChanged(updated, mode),
    ...(changed && {
      undo: () => call(accessRules.setAccessRuleMode, { body: { mode: other, ids: [...changed] } }),
    }),
    ...(onDone && { onDone }),
  })
  return (
    <ConfirmButton
      {...(size !== undefined && { size })}
      label={t.setMode[mode]}
      title={t.setModeTitle[mode]}
      consequence={mode === 'ENFORCE' ? <LastDay selection={selection} /> : text.modeHints.MONITOR}
      isDangerous={false}
      onConfirm={() => set.mutateAsync({ body: { mode, ...selection } })}
    />
  )
}
