import type { AgentFileDraft } from '../agent-file/draft.ts'
import type { AgentDialect } from './dialect.ts'

/** The agent files of Codex, which are TOML. */
export const codex: AgentDialect = {
  name: 'codex',
  folders: ['.codex/agents'],
  homeFolders: ['.codex/agents'],
  place: '.codex/agents',
  ending: '.toml',
  signs: [],
  models: ['openai'],
  toolWords: {},
  serverWord: (server, tool) => `${server}__${tool}`,
  read(draft) {
    draft.common()
    draft.agent.instructions = draft.text('developer_instructions') ?? draft.agent.instructions
    draft.effort('model_reasoning_effort')
    readSandbox(draft)
    draft.servers('mcp_servers')
    draft.keep('nickname_candidates')
    draft.ignore(['approval_policy', 'skills', 'model_verbosity', 'service_tier'], 'there is nothing of the kind here')
  },
  write(writing) {
    const { agent } = writing
    const mode = writing.isReadOnly() ? 'read-only' : 'workspace-write'
    return {
      ...writing.common(),
      model_reasoning_effort: agent.settings.reasoning,
      sandbox_mode: writing.isReadOnly() || writing.isClosed('net') ? mode : (agent.sandbox ?? undefined),
      mcp_servers: writing.servers(SERVERS),
    }
  },
}

const SERVERS = {
  only: 'enabled_tools',
  not: 'disabled_tools',
  none: { enabled: false },
  headers: 'http_headers',
  envKeys: 'env_vars',
  envHeaders: 'env_http_headers',
  timeout: 'tool_timeout_sec' as const,
}

/** Reads the sandbox. Nothing sandboxes programs here, so they are denied where it would confine them. */
function readSandbox(draft: AgentFileDraft): void {
  const mode = draft.text('sandbox_mode')
  if (mode === null) return
  if (mode !== 'workspace-write' && mode !== 'danger-full-access') {
    draft.narrowing.readOnly()
    draft.narrowing.deny(['net:*'])
    if (mode !== 'read-only') return draft.strictest('sandbox_mode', mode, 'read-only')
    const message = '`sandbox_mode: read-only`: programs cannot be fenced here, so none may be started'
    return draft.tightened(message, 'sandbox_mode')
  }
  if (mode === 'workspace-write') {
    draft.keep('sandbox_workspace_write')
    if (draft.fields.map('sandbox_workspace_write')?.flag('network_access') !== true) draft.narrowing.deny(['net:*'])
    return draft.fence(mode, 'sandbox_mode')
  }
  draft.report.warning({
    code: 'permission',
    message: `\`sandbox_mode: ${mode}\` is ignored: a file cannot loosen what host and runtime allow`,
    line: draft.lineOf('sandbox_mode'),
  })
}
