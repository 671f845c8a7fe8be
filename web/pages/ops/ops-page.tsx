// Operations: what was spent, whether the record holds, what waits, and who works.

import type { ReactNode } from 'react'
import { useServerInfo } from '../../data/server.ts'
import '../../styles/ops.css'
import { ProcessCard } from './process-card.tsx'
import { QueueCard } from './queue-card.tsx'
import { RecordCard } from './record-card.tsx'
import { SpentCard } from './spent-card.tsx'
import { TokenCard } from './token-card.tsx'
import { WebhookCard } from './webhook-card.tsx'

export function OpsPage(): ReactNode {
  const version = useServerInfo().value?.version
  return (
    <div className="scroll">
      <div className="page page-wide">
        <div className="page-h">
          <h1>Operations</h1>
          <span className="grow" />
          {version === undefined ? null : <span className="meta">legate {version}</span>}
        </div>
        <div className="opsgrid">
          <SpentCard />
          <div className="c4 stack">
            <RecordCard />
            <QueueCard />
          </div>
          <ProcessCard />
          <TokenCard />
          <WebhookCard />
        </div>
      </div>
    </div>
  )
}
