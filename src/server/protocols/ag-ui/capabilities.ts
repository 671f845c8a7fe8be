import type { AgentInfo } from '../../../doors/rows.ts'
import type { Json } from '../../../index.ts'

/** The abilities of an agent, as AG-UI says them. Who may not approve is not asked. */
export function capabilitiesOf({ name, description, subagents, output }: AgentInfo, approves: boolean): Json {
  return {
    identity: { name, description, provider: 'legate' },
    transport: { streaming: true },
    tools: { supported: true },
    output: { structuredOutput: output !== null },
    state: { snapshots: false, deltas: false },
    multiAgent: {
      supported: true,
      delegation: subagents.length > 0,
      subagents: subagents.map((one) => ({ name: one })),
    },
    reasoning: { supported: true, streaming: true },
    humanInTheLoop: { supported: approves, approvals: approves, interrupts: true, approveWithEdits: approves },
  }
}
