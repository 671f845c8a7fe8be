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
  projectFiles: [['AGENTS.override.md', 'AGENTS.md']],
  serverWord: (server, tool) => `${server}__${tool}`,
  read(draft) {
    draft.common()
    draft.agent.instructions = draft.text('developer_instructions') ?? draft.agent.instructions
    draft.effort('model_reasoning_effort')
    readSandbox(draft, 'sandbox_mode')
    readNetwork(draft)
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

/** Reads the mode of a sandbox. Nothing sandboxes programs here, so they are denied where it would confine them. */
export function readSandbox(draft: AgentFileDraft, key: string): void {
  const mode = draft.text(key)
  if (mode === null) return
  if (mode === 'workspace-write') return fence(draft, key)
  if (mode === 'danger-full-access') {
    return draft.tightened(`\`${key}: ${mode}\` is ignored: a file cannot loosen what host and runtime allow`, key)
  }
  draft.narrowing.readOnly()
  draft.narrowing.deny(['net:*'])
  if (mode !== 'read-only') return draft.strictest(key, mode, 'read-only')
  draft.tightened(`\`${key}: read-only\`: programs cannot be fenced here, so none may be started`, key)
}

/** Reads a sandbox that limits programs to the workspace. Nothing here enforces it, which a warning says. */
function fence(draft: AgentFileDraft, key: string): void {
  draft.agent.sandbox = 'workspace-write'
  const message = `\`${key}: workspace-write\`: programs cannot be fenced here: they can write anywhere and use the network`
  const hint = 'Forbid them with grant: { deny: ["exec:*"] }, or name the few that are needed.'
  draft.report.warning({ code: 'permission', message, line: draft.lineOf(key), hint })
}

function readNetwork(draft: AgentFileDraft): void {
  if (draft.agent.sandbox !== 'workspace-write') return
  draft.keep('sandbox_workspace_write')
  if (draft.fields.map('sandbox_workspace_write')?.flag('network_access') !== true) draft.narrowing.deny(['net:*'])
}
