/** A decision with its steps, the sentence for the customer, and the remedies. */

import type { Code } from '@keyward/contract'
import { Button, CopyButton } from '@mantine/core'
import { IconCheck, IconCopy, IconX } from '@tabler/icons-react'
import { Link } from 'wouter'

import { useMay } from '../../api/me.ts'
import { useName } from '../../api/names.ts'
import { LetThroughMenu } from '../../parts/let-through.tsx'
import { CodeBadge } from '../../parts/parts.tsx'
import { text } from '../../text.ts'
import { StepsList } from './steps-list.tsx'
import { type Decision, stepsOf } from './steps.ts'

const t = {
  explain: {
    VALID: 'The check is valid.',
    NOT_FOUND: 'No license has this key.',
    BLACKLISTED: 'A blacklist rejects the check.',
    REVOKED: 'The license is revoked. A revocation is final.',
    SUSPENDED: 'The license is suspended.',
    EXPIRED: 'The license has expired.',
    FINGERPRINT_REQUIRED: 'The license has a machine limit, and the check has no machine id.',
    TOO_MANY_MACHINES: 'Every slot is taken by another machine.',
  } satisfies Record<Code, string>,
}

export function DecisionCard({
  decision,
  machineId,
  onChange,
}: {
  decision: Decision
  machineId: string
  /** Decides again after a remedy. */
  onChange: () => void
}) {
  const may = useMay()
  const { evaluation: evaluated, license: one } = decision
  const { code, decidedBy, restricted } = evaluated
  const product = useName(one?.productId ?? null)
  const customer = useName(one?.customerId ?? null)
  const steps = stepsOf(decision, { product, customer })
  const isExcluded = decidedBy?.kind === 'EXCLUSION' && code === 'VALID'
  const explanation = restricted
    ? 'A restriction allows only other checks.'
    : isExcluded
      ? 'An exclusion lets it through. Blacklists and the machine limit do not apply.'
      : t.explain[code]
  const aloud = [
    `${text.codes[code]}. ${explanation}`,
    ...steps.map(({ title, sentence }, index) => `${index + 1}. ${title}: ${sentence}`),
  ].join('\n')
  const isValid = code === 'VALID'
  return (
    <div className="decision" role="status" aria-label="Decision">
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
        onChange={onChange}
      />
      <div className="decision-actions">
        {may('licenses.write') && one && !isValid && machineId !== '' && (
          <LetThroughMenu licenseId={one.id} machineId={machineId} isPrimary onDone={onChange} />
        )}
        {one && (
          <Button variant="default" component={Link} href={`/licenses/${one.id}`}>
            Open the license
          </Button>
        )}
        <CopyButton value={aloud}>
          {({ copied, copy }) => (
            <Button variant="default" onClick={copy} leftSection={<IconCopy size={14} />}>
              {copied ? 'Copied' : 'Copy the explanation'}
            </Button>
          )}
        </CopyButton>
      </div>
    </div>
  )
}
