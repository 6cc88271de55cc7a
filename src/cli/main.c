/* main.c - the program: the library's command line with the built-in models. */
#include <paceline.h>

int main(int argc, char **argv)
{
    return pl_app_main(argc, argv, NULL);
}
