import { type ReactNode, useState } from 'react'
import { client } from '../../data/client.ts'
import { useMay } from '../../data/server.ts'
import type { AuditReport } from '../../data/types.ts'
import { Button } from '../../parts/button.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Shape } from '../../parts/state.tsx'
import { useTask } from '../../parts/task.ts'
import { useNow } from '../../window/clock.ts'
import { count, span } from '../../words/format.ts'
import { Card } from './card.tsx'

interface Verified {
  readonly report: AuditReport
  readonly at: number
}

/** Holds the whole record against its hashes, when somebody asks for it: that reads every row. */
export function RecordCard(): ReactNode {
  const [verified, setVerified] = useState<Verified | null>(null)
  const task = useTask()
  const mayAudit = useMay('audit')
  const verify = () =>
    void task.run(async () => setVerified({ report: await client.audit({ verify: true }), at: Date.now() }))
  const button = (
    <Button isSmall disabled={task.isBusy || !mayAudit} onClick={verify}>
      {task.isBusy ? 'Verifying' : verified === null ? 'Verify' : 'Verify again'}
    </Button>
  )
  return (
    <Card title="Record" width={4} tools={button} asked={{ value: verified, error: task.error, isBusy: task.isBusy }}>
      {(value) => (value === null ? <NotYet mayAudit={mayAudit} /> : <Seal verified={value} />)}
    </Card>
  )
}

function NotYet({ mayAudit }: { readonly mayAudit: boolean }): ReactNode {
  return (
    <div className="seal">
      <Icon name="seal" className="dim" />
      <div>
        <b>Not verified yet</b>
        <p className="dim">
          {mayAudit
            ? 'Verify compares every row with the hash of the commit that wrote it.'
            : 'Your token may not audit.'}
        </p>
      </div>
    </div>
  )
}

function Seal({ verified: { report, at } }: { readonly verified: Verified }): ReactNode {
  const ago = span(useNow() - at)
  const { findings, verified, checked } = report
  if (findings.length > 0) return <Findings report={report} />
  return (
    <div className="seal">
      <Icon name="seal" className="fg-done" />
      <div>
        <b>
          {verified === null || verified.commits === 0
            ? 'Nothing is wrong'
            : `Record verified: ${count(verified.commits, 'commit')}`}
        </b>
        <p className="dim">
          {count(checked.trees, 'tree')}
          {verified === null ? '' : `, ${count(verified.rows, 'row')} held against their hashes`} {ago} ago: nothing is
          wrong.
        </p>
      </div>
    </div>
  )
}

const MOST_FINDINGS = 5

function Findings({ report: { findings } }: { readonly report: AuditReport }): ReactNode {
  return (
    <div className="seal">
      <Shape state="failed" isDecoration />
      <div>
        <b>{count(findings.length, 'thing is', 'things are')} wrong</b>
        <ul className="dim">
          {findings.slice(0, MOST_FINDINGS).map((finding, at) => (
            <li key={at}>{finding.message}</li>
          ))}
        </ul>
      </div>
    </div>
  )
}
