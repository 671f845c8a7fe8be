import type { ReactNode } from 'react'
import { client } from '../../data/client.ts'
import { useRequest } from '../../data/request.ts'
import type { ProcessInfo } from '../../data/types.ts'
import { Shape } from '../../parts/state.tsx'
import { useNow } from '../../window/clock.ts'
import { listOf, span, spanSoFar } from '../../words/format.ts'
import { Card, Table } from './card.tsx'

const HEADS = ['Process', 'Agents it has', '#Steps now', 'Up', 'Last heard']

export function ProcessCard(): ReactNode {
  const ask = async () => (await client.processes({ running: true })).processes
  const processes = useRequest('lists processes', ask)
  const number = <span className="count">{processes.value?.length ?? '–'}</span>
  return (
    <Card title="Processes" width={12} asked={processes} tools={number}>
      {(list) => (
        <Table label="Table of processes" heads={HEADS} empty="No process runs steps of this store.">
          {list.map((process) => (
            <ProcessRow key={process.id} process={process} />
          ))}
        </Table>
      )}
    </Card>
  )
}

function ProcessRow({ process }: { readonly process: ProcessInfo }): ReactNode {
  const { pid, host, isAlive, agents, running, startedAt, heardAt, sources } = process
  const now = useNow()
  const failing = sources.filter(({ failures }) => failures > 0).map(({ name }) => name)
  return (
    <tr>
      <td>
        <span className="row">
          <Shape state={isAlive ? (running?.length === 0 ? 'queued' : 'working') : 'failed'} />
          <b>{host ?? 'process'}</b>
          <span className="idc">{pid}</span>
        </span>
      </td>
      <td>
        {agents === null ? 'unknown' : listOf(agents.filter((name) => name !== ''))}
        {failing.length === 0 ? null : <span className="tag tag-failed">fails: {listOf(failing)}</span>}
      </td>
      <td className="num">{running?.length ?? '—'}</td>
      <td>{isAlive ? (startedAt === null ? 'unknown' : spanSoFar(now - startedAt)) : 'gone'}</td>
      <td>{heardAt === null ? 'unknown' : `${span(Math.max(0, now - heardAt))} ago`}</td>
    </tr>
  )
}
