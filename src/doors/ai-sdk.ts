export { type AiSdkTool, asAiSdkTool } from '../core/agent/build/ai-sdk-tool.ts'
export {
  UI_MESSAGE_ID,
  type UiApproval,
  type UiDataParts,
  type UiMessage,
  type UiMessageChunk,
  type UiMessageChunk7,
  type UiMetadata,
  type UiQuestion,
  type UiSubagent,
  type UiSubagentCall,
} from '../core/conversation/ui/ui-chunk.ts'
export { toUIMessageStream, toUIMessages } from '../core/conversation/ui/ui-message-stream.ts'
export type { UiPageQuery, UiStreamOptions } from '../core/conversation/ui/ui-options.ts'
export type { AiSdkModel } from '../core/model/ai-sdk/ai-sdk-model.ts'
export { fromAiSdk } from '../core/model/ai-sdk/from-ai-sdk.ts'
