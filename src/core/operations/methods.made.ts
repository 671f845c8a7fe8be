// Made from the table of operations: `npx vitest run src/core/operations/table.test.ts -u`.

import type { MethodNames } from './methods.ts'

export const RUNTIME_METHODS: MethodNames = {
  runs: 'runs why usage timeline otlp diff',
  conversations: 'conversations tree picture graph forget',
  trees: 'import changes',
  nodes: 'nodeInfo result',
  inbox: 'inbox settle approvals questions answer checkAnswer',
  owners: 'forgetOwner prune',
  usage: 'usageByDay',
  processes: 'processes audit copyFrom restored',
}

export const PRINCIPAL_METHODS: MethodNames = {
  agents: 'agents',
  runs: 'runs look cancel why usage timeline otlp nodes eventPage diff',
  conversations: 'conversations tree picture graph forget',
  trees: 'find trees treeData treeEvents export import lastSeq changes',
  nodes: 'nodeInfo requestOf result node',
  inbox: 'inbox settle approvals questions answer checkAnswer',
  owners: 'forgetOwner prune',
  usage: 'usageByDay',
  processes: 'processes audit',
}

export const TALK_METHODS: MethodNames = {
  lanes: 'row transcriptPage lanes usageStats sessions messagesPage messagePage uiMessages contextFor versions eventPage closeSession observe',
}
