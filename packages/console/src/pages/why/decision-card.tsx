/** A decision with its steps, the sentence for the customer, and the remedies. */

import { Button, CopyButton } from '@mantine/core'
import { IconCheck, IconCopy, IconX } from '@tabler/icons-react'
import { Link } from 'wouter'

import { useName } from '../../api/names.ts'
import { LetThroughMenu } from '../../parts/let-through.tsx'
import { CodeBadge } from '../../parts/parts.tsx'
import { text } from '../../text.ts'
import { StepsList } from './steps-list.tsx'
import { type Decision, stepsOf } from './steps.ts'

const t = text.why

export function DecisionCard({
  decision,
  machineId,
  canWrite,
  onChange,
}: {
  decision: Decision
  machineId: string
  canWrite: boolean
  /** Decides again after a remedy. */
  onChange: () => void
}) {
  const { evaluation: evaluated, license: one } = decision
  const { code, decidedBy, restricted } = evaluated
  const product = useName(one?.productId ?? null)
  const customer = useName(one?.customerId ?? null)
  const steps = stepsOf(decision, { product, customer })
  const isExcluded = decidedBy?.kind === 'EXCLUSION' && code === 'VALID'
  const explanation = restricted ? t.unrestricted : isExcluded ? t.excluded : t.explain[code]
  const aloud = [
    `${text.codes[code]}. ${explanation}`,
    ...steps.map(({ title, sentence }, index) => `${index + 1}. ${title}: ${sentence}`),
  ].join('\n')
  const isValid = code === 'VALID'
  return (
    <div className="decision" role="status" aria-label={t.result}>
      <div className="verdict" data-valid={isValid ? '' : undefined}>
        <span className="verdict-glyph" aria-hidden="true">
          {isValid ? <IconCheck size={18} /> : <IconX size={18} />}
        </span>
        <div>
          <h2 className="card-title">{explanation}</h2>
          <CodeBadge code={code} />
        </div>
      </div>
      <StepsList
        steps={steps}
        license={one}
        holders={code === 'TOO_MANY_MACHINES' ? decision.holders : []}
        canWrite={canWrite}
        onChange={onChange}
      />
      <div className="decision-actions">
        {canWrite && one && !isValid && machineId !== '' && (
          <LetThroughMenu licenseId={one.id} machineId={machineId} isPrimary onDone={onChange} />
        )}
        {one && (
          <Button variant="default" component={Link} href={`/licenses/${one.id}`}>
            {t.openLicense}
          </Button>
        )}
        <CopyButton value={aloud}>
          {({ copied, copy }) => (
            <Button variant="default" onClick={copy} leftSection={<IconCopy size={14} />}>
              {copied ? text.copied : t.copyAloud}
            </Button>
          )}
        </CopyButton>
      </div>
    </div>
  )
}
