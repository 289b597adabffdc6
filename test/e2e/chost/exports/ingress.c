/* The other one, see pipeline.c. */

void flb_input_ingress_destroy(void *input);
void flb_input_ingress_destroy(void *input)
{
	(void)input;
	__builtin_trap();
}
