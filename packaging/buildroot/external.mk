include $(sort $(wildcard $(BR2_EXTERNAL_PUNCTUAL_PATH)/package/*/*.mk))
