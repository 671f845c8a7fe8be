import { type NoOptions, readOptions } from '../base/options.ts'
import type { Tool } from '../tool/tool.ts'
import { fileTools } from './file-tools.ts'
import { searchTextTool, treeTool } from './search-tools.ts'
import { shellTool } from './shell-tool.ts'
import { withWorkspacePaths } from './workspace-paths.ts'

export type DeveloperToolName =
  | 'shell'
  | 'read_text_file'
  | 'write_file'
  | 'edit_file'
  | 'delete_file'
  | 'list_directory'
  | 'search_files'
  | 'search_text'
  | 'tree'

/**
 * Tools for work in a folder: run, read, write, edit, search. They use the files of `createRuntime({ files })`, paths
 * may be relative to the workspace, and every action is decided: `exec:git *`, `file.read:/workspace/**`.
 */
export function developerTools(options: NoOptions = {}): Record<DeveloperToolName, Tool> {
  readOptions('developerTools()', options, {})
  const { read_text_file, write_file, edit_file, delete_file, list_directory, search_files } = fileTools()
  return {
    shell: shellTool(),
    read_text_file: withWorkspacePaths(read_text_file),
    write_file: withWorkspacePaths(write_file),
    edit_file: withWorkspacePaths(edit_file),
    delete_file: withWorkspacePaths(delete_file),
    list_directory: withWorkspacePaths(list_directory),
    search_files: withWorkspacePaths(search_files),
    search_text: searchTextTool(),
    tree: treeTool(),
  }
}
