import { own } from '../text/own.ts'

/** The word of another program for each tool of ours. */
const WORDS: Readonly<Record<'claude' | 'gemini' | 'copilot' | 'opencode', Readonly<Record<string, string>>>> = {
  claude: {
    read_text_file: 'Read',
    read_multiple_files: 'Read',
    get_file_info: 'Read',
    write_file: 'Write',
    edit_file: 'Edit',
    delete_file: 'Bash',
    search_files: 'Grep',
    search_text: 'Grep',
    list_directory: 'Glob',
    list_directory_with_sizes: 'LS',
    tree: 'LS',
    shell: 'Bash',
    'todo_*': 'TodoWrite',
    'skills_*': 'Skill',
  },
  gemini: {
    read_text_file: 'read_file',
    read_multiple_files: 'read_many_files',
    get_file_info: 'read_file',
    write_file: 'write_file',
    edit_file: 'replace',
    search_files: 'search_file_content',
    search_text: 'search_file_content',
    list_directory: 'list_directory',
    list_directory_with_sizes: 'list_directory',
    tree: 'list_directory',
    shell: 'run_shell_command',
    'todo_*': 'write_todos',
    'skills_*': 'activate_skill',
    'memory_*': 'save_memory',
  },
  copilot: {
    read_text_file: 'read',
    read_multiple_files: 'read',
    get_file_info: 'read',
    write_file: 'edit',
    edit_file: 'edit',
    delete_file: 'edit',
    search_files: 'search',
    search_text: 'search',
    list_directory: 'search',
    list_directory_with_sizes: 'search',
    tree: 'search',
    shell: 'execute',
    'todo_*': 'todo',
  },
  opencode: {
    read_text_file: 'read',
    read_multiple_files: 'read',
    get_file_info: 'read',
    write_file: 'write',
    edit_file: 'edit',
    delete_file: 'patch',
    search_files: 'grep',
    search_text: 'grep',
    list_directory: 'list',
    list_directory_with_sizes: 'list',
    tree: 'list',
    shell: 'bash',
    'todo_*': 'todowrite',
    'skills_*': 'skill',
  },
}

export type ToolDialect = keyof typeof WORDS

/** Tools of ours by the words of a dialect, each once; a tool of a server as the dialect writes it. */
export function wordsFor(tools: readonly string[], dialect: ToolDialect): string[] {
  return [...new Set(tools.map((tool) => own(WORDS[dialect], tool) ?? serverWord(tool, dialect)))]
}

function serverWord(tool: string, dialect: ToolDialect): string {
  const [, server, name] = /^(.+?)__(.+)$/.exec(tool) ?? []
  if (server === undefined || name === undefined) return tool
  if (server === '*') return dialect === 'gemini' ? 'mcp_*' : 'mcp__*'
  if (dialect === 'claude') return `mcp__${server}__${name}`
  if (dialect === 'gemini') return `mcp_${server}_${name}`
  return dialect === 'copilot' ? `${server}/${name}` : `${server}_${name}`
}
